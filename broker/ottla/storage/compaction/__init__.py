"""Compaction: `cleaner` chooses a log and swaps segments on the broker, `rewriting` runs in the worker process."""
