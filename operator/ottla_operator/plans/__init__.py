"""Decisions: what should exist, what to do next, what the status says. Pure.

layout           the nodes of a KafkaCluster: pools, zones, ids
rollout          which pod is restarted next, and why the others are not
topics           what to create, change and delete in Kafka
spark_phases     the phases of a SparkApplication; spark_driver: its pods
cluster_status, spark_status, conditions    what the status says
zones            in which zones the pods of a pool may run
ownership        whose an object is that bears a name which we want; refusals: what Kubernetes refused
observed         what exists, as decisions need it; comparison: whether an object is as it should be
obstacle         why something is not possible now
"""
