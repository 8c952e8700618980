"""Typed specs → Kubernetes objects, one kind of object per file. Pure."""
