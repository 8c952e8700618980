"""Decisions of storage. Pure.

producers, verification    idempotent and transactional producers of a partition; transactions being verified (KIP-890)
cleaning_plan              which log to compact next, and how far
offset_map, batch_filter, cleaned_transactions    what compaction keeps
settings                   a log's settings, typed
names                      names of files and folders
slice, removals            what a read returns; deleted files that wait for their readers
"""
