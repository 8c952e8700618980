"""What consumer groups and share groups have in common: members that live by heartbeats, epochs, records. Pure."""
