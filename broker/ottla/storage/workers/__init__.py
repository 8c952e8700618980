"""Processes beside the broker for work record by record, which would hold the event loop.

worker            starts the process and runs jobs in it; worker_process: its other end
recompress        the job that validates and recompresses a client's batch
"""
