"""What consumer groups (KIP-848) and share groups (KIP-932) have in common: both live by heartbeats. Pure.

group      timers of members, writing and applying entries, waiting requests
epochs     when the epoch of a group rises, and the entries of a new target
targets    when a heartbeat or a thread computes the target of a group (KIP-1263)
entries    the entries of a group's log: kinds of records, keys and values
"""
