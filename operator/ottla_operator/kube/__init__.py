"""The client side of the API server; only Kopf's watch talks to it besides.

client       requests: get, list, server-side apply, delete
observing    reads what exists of a cluster, as typed values
applying     applies manifests whose hash or content differs
status       writes an object's status when it has changed
events       Kubernetes Events, at a bounded rate
moments      the current time as Kubernetes writes it
"""
