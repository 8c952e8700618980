"""Membership of share groups (KIP-932): who shares which partitions. Pure. Delivery of records is in `ottla.share`."""
