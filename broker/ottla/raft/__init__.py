"""The metadata quorum. An entry is committed when a majority of the voters has it on disk.

core             Raft without I/O: what to persist, send and apply. Pure
store            term, vote, log and snapshot on disk, synced before a message leaves
driver           performs what `core` asks for: persists, sends, applies, keeps time
voter_changes    adds and removes voters while the quorum works
"""
