"""Decisions: what should be, what comes next, what to tell. Pure."""
