"""Logs on disk in Kafka's own file formats. Flushed records survive a power loss.

core           decisions: producers, what to compact, what compaction keeps of a batch. Pure
log            one partition's log: segments and indexes, append, read, roll, recovery, retention, truncation
compaction     the cleaner, and the rewriting of segments in the worker process
directories    all log dirs: ownership, their logs and checkpoints, the failure of one
workers        processes for work record by record
"""
