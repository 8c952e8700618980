"""Logs on disk in Kafka's own file formats."""
