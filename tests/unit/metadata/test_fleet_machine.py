"""A fleet in racks through anything that can happen to it, in any order; after each step its promises hold."""

import uuid
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from ottla.errors import KafkaError
from ottla.metadata.decisions import commands as ask
from ottla.metadata.decisions.balance import preferred_due
from ottla.metadata.decisions.controller import decide
from ottla.metadata.decisions.draining import drain
from ottla.metadata.decisions.features import SUPPORTED_FEATURES
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import Record, decode_batch, encode_batch
from ottla.metadata.model.state import NO_LEADER, PartitionState, ResourceType
from support.decisions import Fleet

TOPICS = ("a", "b", "any")
UNCLEAN = "any"
brokers = st.integers(0, 5)
topics = st.sampled_from(TOPICS)
indexes = st.integers(0, 2)


class FleetMachine(RuleBasedStateMachine):
    """The machine knows which topics allow unclean elections, and checks each change of leader against that."""

    @initialize(count=st.integers(3, 6), min_isr=st.integers(1, 3))
    def begin(self, count: int, min_isr: int) -> None:
        self.fleet = Fleet(brokers=0, min_insync_replicas=min_isr)
        self.batches: list[list[Record]] = []
        self.start = self.fleet.image
        self.by_hand: set[tuple[str, int]] = set()  # unclean elections that somebody ordered
        self.said_in_sync: set[int] = set()  # by the leader, in the command that is decided
        for broker in range(count):
            self.submit(self.registration(broker, -1))
            self.on_broker(ask.UnfenceBroker, broker)

    # -- steps

    @rule(topic=topics, partitions=st.integers(1, 3), factor=st.integers(1, 4))
    def create(self, topic: str, partitions: int, factor: int) -> None:
        configs = [("unclean.leader.election.enable", "true")] if topic == UNCLEAN else []
        self.submit(ask.CreateTopics([ask.NewTopic(topic, partitions, factor, configs=configs)]))

    @rule(topic=topics)
    def delete(self, topic: str) -> None:
        self.submit(ask.DeleteTopics([ask.TopicRef(topic)]))

    @rule(topic=topics, count=st.integers(2, 3))
    def grow(self, topic: str, count: int) -> None:
        self.submit(ask.CreatePartitions([ask.NewPartitions(topic, count)]))

    @rule(broker=brokers, clean=st.booleans(), unfence=st.booleans())
    def restart(self, broker: int, clean: bool, unfence: bool) -> None:
        known = self.image.brokers.get(broker)
        self.submit(self.registration(broker, known.epoch if clean and known else -1))
        assert not any(broker in state.isr for _, state in self.states(self.image))
        assert clean or not any(broker in state.elr for _, state in self.states(self.image))
        if unfence:
            self.on_broker(ask.UnfenceBroker, broker)

    @rule(broker=brokers)
    def fence(self, broker: int) -> None:
        self.on_broker(ask.FenceBroker, broker)

    @rule(broker=brokers)
    def shut_down(self, broker: int) -> None:
        self.on_broker(ask.FenceBroker, broker, in_controlled_shutdown=True)

    @rule(broker=brokers)
    def unfence(self, broker: int) -> None:
        self.on_broker(ask.UnfenceBroker, broker)

    @rule(broker=brokers)
    def unregister(self, broker: int) -> None:
        self.submit(ask.UnregisterBroker(broker))

    @rule(topic=topics, index=indexes, shrink=st.sets(brokers, max_size=3))
    def shrink_isr(self, topic: str, index: int, shrink: set[int]) -> None:
        state = self.image.partition(topic, index)
        if state is not None and state.leader != NO_LEADER:
            self.alter(topic, state, [each for each in state.isr if each == state.leader or each not in shrink])

    @rule(topic=topics, index=indexes)
    def all_catch_up(self, topic: str, index: int) -> None:
        state = self.image.partition(topic, index)
        if state is not None and state.leader != NO_LEADER:
            able = filter(self.image.is_active, state.replicas)
            self.alter(topic, state, [each for each in able if each not in state.lost])

    @rule(topic=topics, index=indexes, wanted=st.lists(brokers, min_size=1, max_size=4, unique=True))
    def reassign(self, topic: str, index: int, wanted: list[int]) -> None:
        self.submit(ask.AlterReassignments([ask.Reassignment(topic, index, wanted)]))

    @rule(topic=topics, index=indexes)
    def cancel(self, topic: str, index: int) -> None:
        self.submit(ask.AlterReassignments([ask.Reassignment(topic, index, None)]))

    @rule(topic=topics, index=indexes, kind=st.integers(0, 1))
    def elect(self, topic: str, index: int, kind: int) -> None:
        self.by_hand = {(topic, index)} if kind == ask.ElectionType.UNCLEAN else set()
        self.submit(ask.ElectLeaders(kind, [(topic, index)]))
        self.by_hand = set()

    @rule()
    def balance(self) -> None:
        due = preferred_due(self.image)
        if due is not None:
            self.submit(due)
            assert preferred_due(self.image) is None, "one round is enough"

    @rule(broker=brokers, leaders_only=st.booleans())
    def drain(self, broker: int, leaders_only: bool) -> None:
        for command in drain(self.image, broker, leaders_only=leaders_only).commands:
            self.submit(command)
        assert not drain(self.image, broker, leaders_only=leaders_only).commands, "nothing is asked twice"

    @rule(topic=st.sampled_from(("a", "b")), value=st.sampled_from(["1", "2", "3"]))
    def set_min_isr(self, topic: str, value: str) -> None:
        change = ask.SettingChange("min.insync.replicas", ask.SettingOperation.SET, value)
        self.submit(ask.IncrementalAlterConfigs([((ResourceType.TOPIC, topic), [change])]))

    @rule(broker=brokers, topic=topics, index=indexes)
    def lose_replica(self, broker: int, topic: str, index: int) -> None:
        found = self.image.topics.get(topic)
        if found is not None:
            self.on_broker(ask.ReplicasLost, broker, partitions=[(found.id, index)])

    # -- promises

    @invariant()
    def every_partition_is_sound(self) -> None:
        for _, state in self.states(self.image):
            isr, replicas, elr = set(state.isr), set(state.replicas), set(state.elr)
            assert replicas and len(replicas) == len(state.replicas) == len(state.directories)
            assert len(isr) == len(state.isr) and isr <= replicas
            assert len(elr) == len(state.elr) and elr <= replicas - isr
            assert set(state.adding) <= replicas and set(state.removing) <= replicas
            assert len(state.last_known_elr) <= 1 and set(state.last_known_elr) <= replicas
            if state.leader == NO_LEADER:
                assert not any(map(self.image.is_active, (*isr, *elr))), "somebody could lead"
            else:
                assert state.leader in isr and self.image.is_active(state.leader) and not state.last_known_elr
            assert not {*isr, *elr}.intersection(state.lost)
            assert all(map(self.image.is_active, isr)), "a broker that went is not in sync"

    @invariant()
    def moves_end_when_all_are_in_sync(self) -> None:
        for _, state in self.states(self.image):
            if state.adding or state.removing:
                assert not set(state.replicas) - set(state.removing) <= set(state.isr)

    @invariant()
    def the_image_follows_from_its_records(self) -> None:
        numbered = [(self.start.version + n, 1, records) for n, records in enumerate(self.batches, 1)]
        assert self.start.apply_batches(numbered)[0] == self.image
        assert Image.from_snapshot(self.image.to_snapshot()) == self.image

    # -- how

    @property
    def image(self) -> Image:
        return self.fleet.image

    def submit(self, command: ask.Command[Any]) -> None:
        before = self.image
        try:
            records = decide(before, command, self.fleet.context()).records
        except KafkaError:
            return
        if records:
            self.batches.append(list(decode_batch(encode_batch(records))))
            self.fleet.apply(self.batches[-1])
        self.check_changes(before)

    def check_changes(self, before: Image) -> None:
        old = {(topic.id, state.index): state for topic in before.topics.values() for state in topic.partitions}
        for topic in self.image.topics.values():
            for state in topic.partitions:
                was = old.get((topic.id, state.index))
                if was is not None and was != state:
                    self.check_change(topic.name, was, state)

    def check_change(self, topic: str, was: PartitionState, state: PartitionState) -> None:
        assert state.partition_epoch == was.partition_epoch + 1
        new_term = state.leader != was.leader or not set(was.replicas) <= set(state.replicas)
        assert state.leader_epoch == was.leader_epoch + new_term
        if state.leader in (NO_LEADER, was.leader):
            return
        lossless = {*was.isr, *was.elr} or set(was.last_known_elr)
        lossless |= self.said_in_sync
        unclean = topic == UNCLEAN or (topic, state.index) in self.by_hand
        assert state.leader in lossless or unclean, f"{state.leader} was elected from {was}"

    def registration(self, broker: int, previous_epoch: int) -> ask.RegisterBroker:
        return ask.RegisterBroker(
            broker,
            self.fleet.context().new_uuid(),
            "cluster",
            [],
            rack="abc"[broker % 3],
            log_dirs=[uuid.UUID(int=1000 + broker)],
            features=SUPPORTED_FEATURES,
            previous_epoch=previous_epoch,
        )

    def on_broker(self, kind: Any, broker: int, **options: Any) -> None:
        known = self.image.brokers.get(broker)
        if known is not None:
            self.submit(kind(broker, known.epoch, **options))

    def alter(self, topic: str, state: PartitionState, isr: list[int]) -> None:
        members = [(each, self.image.brokers[each].epoch) for each in isr]
        change = ask.IsrChange(
            self.image.topics[topic].id, state.index, state.leader_epoch, state.partition_epoch, members
        )
        self.said_in_sync = set(isr)
        self.submit(ask.AlterPartition(state.leader, self.image.brokers[state.leader].epoch, [change]))
        self.said_in_sync = set()

    @staticmethod
    def states(image: Image) -> list[tuple[str, PartitionState]]:
        return [(topic.name, state) for topic in image.topics.values() for state in topic.partitions]


FleetMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestFleet = FleetMachine.TestCase
