"""Kafka listeners and connections."""
