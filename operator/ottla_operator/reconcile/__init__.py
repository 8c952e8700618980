"""Reconciling one object at a time: observe → decide (`plans`, pure) → act → write the status.

`reconcilers` puts the parts together for the handlers, `queue` decides when an object is reconciled, and there is one
file per kind. What was decided is kept in Kubernetes' objects only, so a restarted operator goes on where it was.
"""
