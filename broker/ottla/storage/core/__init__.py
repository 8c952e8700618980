"""Decisions of storage. Pure.

producers, verification    idempotent and transactional producers of a partition; transactions being verified (KIP-890)
cleaning_plan              which log to compact next, and how far
offset_map, batch_filter, cleaned_transactions    what compaction keeps
settings                   a log's settings, typed
names                      names of files and folders
aborted                    aborted transactions of a segment, in memory
slice, removals            what a read returns; deleted files that wait for their readers
"""
