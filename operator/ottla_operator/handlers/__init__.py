"""Kopf's decorators, one file per kind: an event of the watch is handed to `reconcile`.

Only `@kopf.on.event`: Kopf's handlers of changes, daemons and timers write annotations and finalizers into the objects,
which GitOps tools would see as drift. The operator writes the status and its own objects, and nothing while nothing
happens.
"""
