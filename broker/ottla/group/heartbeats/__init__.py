"""What groups that live by heartbeats have in common: consumer groups (KIP-848) and share groups (KIP-932). Pure.

group      members' timers, entries to write and to put in force, requests that wait
epochs     when the epoch of a group rises, and how a new target is written down
entries    what is written: kinds of records, keys and values
"""
