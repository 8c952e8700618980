"""Processes beside the broker for work record by record, which would hold the event loop."""
