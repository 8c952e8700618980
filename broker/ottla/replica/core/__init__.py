"""Decisions of replication. Pure; time is an argument.

isr         the leader's view of its followers: in-sync set and high watermark
throttle    how fast throttled replicas are copied
"""
