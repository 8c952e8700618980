"""Raft without I/O. Pure.

messages, config, log, progress, quorum   values and their arithmetic
raft                                      the automaton from outside: events and proposals in, effects out
roles                                     a member's role: elections, votes, following, and when it leads
leading                                   one term of leading: replication, commits, voters that come and go
frames                                    entries and snapshots as bytes
voting                                    who may become a voter, or cease to be one
"""
