"""Raft without I/O. Pure.

messages, log, progress, quorum, role     values and their arithmetic
raft, elections, leading, following       the automaton: events in, effects out
frames                                    entries and snapshots as bytes
voting                                    who may become a voter, or cease to be one
"""
