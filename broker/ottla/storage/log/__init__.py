"""The log of one partition: `log` (over `writing` and `reading`), its segments, and how they are recovered and shortened."""
