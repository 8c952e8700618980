"""The settings that the chart gives to the operator as environment variables."""

from collections.abc import Mapping

import msgspec

from ottla_operator.manifests.stateful_set import BrokerImage

__all__ = ["Environment"]


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """`namespaces`: those whose objects are reconciled; none means all."""

    broker_image: BrokerImage
    spark_image: str
    pull_policy: str
    cluster_domain: str
    namespaces: tuple[str, ...]

    @staticmethod
    def read(variables: Mapping[str, str]) -> "Environment":
        pull_policy = variables.get("OTTLA_IMAGE_PULL_POLICY", "IfNotPresent")
        return Environment(
            broker_image=BrokerImage(variables.get("OTTLA_BROKER_IMAGE", "docker.io/ottla/broker:0.1.0"), pull_policy),
            spark_image=variables.get("OTTLA_SPARK_IMAGE", "docker.io/ottla/spark:0.1.0"),
            pull_policy=pull_policy,
            cluster_domain=variables.get("OTTLA_CLUSTER_DOMAIN", "cluster.local"),
            namespaces=tuple(variables.get("WATCH_NAMESPACES", "").replace(",", " ").split()),
        )
