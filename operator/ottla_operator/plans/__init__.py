"""Decisions: what should exist, what to do next, what the status says. Pure."""
