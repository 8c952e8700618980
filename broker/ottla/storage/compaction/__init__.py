"""Compaction: `cleaner` chooses and swaps on the broker, `rewriting` runs in the worker process."""
