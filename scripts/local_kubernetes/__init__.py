"""A Kubernetes with three nodes in three zones on this machine, made by hand or by kind: `make cluster-up`.

`choice` says which cluster is used and starts or ends it; everything else serves it. See README.md.
"""
