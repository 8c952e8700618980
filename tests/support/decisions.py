"""A fleet that exists only in its metadata: an image, and the controller's decisions on it, each applied at once."""

import uuid
from random import Random
from typing import Any

import pytest
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions import commands as ask
from ottla.metadata.decisions.commands import Context, NewTopic
from ottla.metadata.decisions.controller import decide
from ottla.metadata.decisions.features import SUPPORTED_FEATURES, initial_feature_records
from ottla.metadata.model.image import Image
from ottla.metadata.model.state import Listener, PartitionState

CLUSTER = "cluster"


class Fleet:
    def __init__(self, brokers: int = 1, **settings: Any) -> None:
        self.random = Random(1)
        self.settings = settings
        self.image = Image(CLUSTER)
        self.image, _ = self.image.apply(initial_feature_records(), version=1, epoch=1)
        for broker in range(brokers):
            self.join(broker)

    def context(self) -> Context:
        return Context(
            new_uuid=lambda: uuid.UUID(int=self.random.getrandbits(128), version=4),
            random=self.random,
            next_version=self.image.version + 1,
            supported_features=SUPPORTED_FEATURES,
            **{"now_ms": 0, **self.settings},
        )

    def ask(self, command: ask.Command[Any]) -> Any:
        decision = decide(self.image, command, self.context())
        self.apply(decision.records)
        return decision.reply

    def apply(self, records: Any) -> None:
        if records:
            self.image, _ = self.image.apply(records, version=self.image.version + 1, epoch=1)

    # -- brokers

    def register(self, broker: int, **changes: Any) -> int:
        fields = {
            "incarnation": self.context().new_uuid(),
            "cluster_id": CLUSTER,
            "listeners": [Listener("PLAINTEXT", "localhost", 9092 + broker)],
            "log_dirs": [uuid.UUID(int=1000 + broker)],
            "features": SUPPORTED_FEATURES,
        }
        epoch: int = self.ask(ask.RegisterBroker(broker, **{**fields, **changes}))
        return epoch

    def join(self, broker: int, **changes: Any) -> int:
        epoch = self.register(broker, **changes)
        self.ask(ask.UnfenceBroker(broker, epoch))
        return epoch

    def rejoin(self, broker: int) -> int:
        """After a clean shutdown."""
        return self.join(broker, previous_epoch=self.epoch(broker))

    def epoch(self, broker: int) -> int:
        return self.image.brokers[broker].epoch

    def fence(self, broker: int, *, shutting_down: bool = False) -> None:
        self.ask(ask.FenceBroker(broker, self.epoch(broker), in_controlled_shutdown=shutting_down))

    def unfence(self, broker: int) -> None:
        self.ask(ask.UnfenceBroker(broker, self.epoch(broker)))

    # -- topics

    def create(self, *topics: NewTopic, validate_only: bool = False) -> Any:
        return self.ask(ask.CreateTopics(topics, validate_only=validate_only))

    def topic(self, *assignments: list[int], name: str = "a", **settings: str) -> None:
        """One partition per list of replicas; underscores in settings stand for dots."""
        configs = [(key.replace("_", "."), value) for key, value in settings.items()]
        (outcome,) = self.create(NewTopic(name, assignments=list(enumerate(assignments)), configs=configs))
        assert outcome.ok, outcome

    def partition(self, index: int = 0, topic: str = "a") -> PartitionState:
        return self.image.topics[topic].partitions[index]

    def sync(self, *isr: int, index: int = 0, topic: str = "a") -> Code:
        """The leader says who is in sync."""
        state = self.partition(index, topic)
        members = [(broker, self.epoch(broker)) for broker in isr]
        change = ask.IsrChange(self.image.topics[topic].id, index, state.leader_epoch, state.partition_epoch, members)
        (outcome,) = self.ask(ask.AlterPartition(state.leader, self.epoch(state.leader), [change]))
        code: Code = outcome.code
        return code

    def reassign(self, *replicas: int, index: int = 0, topic: str = "a", **options: bool) -> Any:
        (outcome,) = self.ask(ask.AlterReassignments([ask.Reassignment(topic, index, replicas)], **options))
        return outcome

    def cancel(self, index: int = 0, topic: str = "a") -> Any:
        (outcome,) = self.ask(ask.AlterReassignments([ask.Reassignment(topic, index, None)]))
        return outcome


def refusal(fleet: Fleet, command: ask.Command[Any]) -> KafkaError:
    version = fleet.image.version
    with pytest.raises(KafkaError) as caught:
        fleet.ask(command)
    assert fleet.image.version == version
    return caught.value
