"""Raft without I/O. Pure.

raft          the state machine from outside: messages, proposals and time in; what to persist and to send out
elections     one member's role: elections, votes, following a leader
leading       one term of leadership: replication, commits, changes of voters
membership    which nodes may be added to the voters or removed from them
admission     which sources a follower accepts a leader's messages from
log, quorum_state   the log in memory; what DescribeQuorum shows
progress      the leader's view of one follower
messages, config, quorum   messages and members, settings, majorities
frames        entries and snapshots as bytes
"""
