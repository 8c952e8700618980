"""Kopf's decorators, one file per kind: an event becomes a word to the queue that looks after the object.

Only `@kopf.on.event`: handlers for changes, daemons and timers write annotations and finalizers into the objects, which
GitOps tools would see as drift. Here nothing is written but status, and nothing at all while nothing happens.
"""
