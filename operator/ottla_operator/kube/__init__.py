"""The API server: reading and applying objects, writing status and events. Only Kopf's watch asks it, too."""
