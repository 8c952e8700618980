"""Partitions hosted by this broker: leadership, high watermark, waiters."""
