"""What a shard and every type of group expect of each other: the group's interface and its records. Pure."""
