"""Offsets that groups commit. Pure.

committed    those of a group, and of all groups of a shard
pending      brought by transactions whose markers have not decided them yet
expiry       what is removed in one turn of the loop
records      Kafka's formats
"""
