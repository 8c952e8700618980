"""What a shard and every type of group expect of each other. Pure.

group      the interface of a group, as its shard uses it
records    the registry of record types of the offsets topic
"""
