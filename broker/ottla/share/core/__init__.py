"""What share groups decide: whose record is whose, what an acknowledgement does, what is kept. Pure.

Whoever has partitions and shards calls it: `share.host`, `share.shard`.
"""
