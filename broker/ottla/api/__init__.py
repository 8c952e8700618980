"""One file per Kafka API; each registers itself with registry.api."""
