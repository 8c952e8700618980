"""Typed specs → Kubernetes objects, one kind of object per file (`spark_*` for SparkApplications). Pure.

`names` and `spark_names` name and label the objects, `ports` has their ports, `server_properties` a node's settings.
"""
