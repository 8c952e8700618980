"""Offsets that groups commit: in force, pending in a transaction, and as records. Pure."""
