"""Bytes to values and back. Bytes from strangers are bounded in memory and time. Pure.

frames                     a request's frame and headers
schema, reader, writer     Kafka's schemas (from kio); readers and writers compiled from them
chunks, text_limits        joins the parts of a response; how long texts may be
metadata_response, fetch_response, produce_response, offset_commit    frequent messages, written by hand
batch, records, framing    record batches; their records; whether records are well formed (compiled by mypyc)
assembly                   builds batches from header fields and records
record_checks, record_times, varints, markers    parts of those
codecs, compression        codecs; decompression with limits
replication                frames between brokers
"""
