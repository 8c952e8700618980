"""The API server: reading and applying objects, writing status and events. Nothing else talks to it but Kopf's watch."""
