"""Logs on disk in Kafka's own file formats.

core           what decides: producers, what to compact, what compaction leaves of a batch. Pure
log            one partition's log: segments and indexes, append, read, roll, recovery, retention, truncation
compaction     the cleaner, and the rewriting of segments in the worker process
directories    all log dirs: who owns them, their logs and checkpoints, the failure of one
workers        processes for work record by record
"""
