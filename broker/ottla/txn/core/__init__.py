"""One transactional id and what every event makes of it. Pure: no clock, disk or network.

Whoever has the log calls it: `txn.shard`, `txn.coordinator`.
"""
