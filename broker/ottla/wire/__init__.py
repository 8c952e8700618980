"""Bytes to values and back: frames, batches, records, compression, and the adapter around kio. Pure."""
