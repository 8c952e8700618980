"""The log of one partition: `log` (over `writing` and `reading`), its segments, how it is recovered and shortened."""
