"""All kinds, in the order in which they are read. Pure."""

from ottla_operator.resources.kafka_cluster import KafkaCluster
from ottla_operator.resources.kafka_topic import KafkaTopic
from ottla_operator.resources.model import Resource
from ottla_operator.resources.spark_application import SparkApplication

__all__ = ["KINDS"]

KINDS: tuple[type[Resource], ...] = (KafkaCluster, KafkaTopic, SparkApplication)
