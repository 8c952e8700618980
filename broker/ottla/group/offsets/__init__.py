"""Offsets that groups commit. Pure.

committed    committed offsets of a group, and of all groups of a shard
pending      offsets of open transactions, until the marker commits or aborts them
expiry       removes expired offsets and empty groups, one batch per turn of the loop
records      Kafka's formats
"""
