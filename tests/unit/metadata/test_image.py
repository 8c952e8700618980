"""An image follows from its records: step by step, in one go, and from its snapshot alike."""

import uuid
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ottla.metadata.decisions import commands as ask
from ottla.metadata.decisions.controller import decide
from ottla.metadata.decisions.features import SUPPORTED_FEATURES, initial_feature_records
from ottla.metadata.model.apply import MetadataError
from ottla.metadata.model.changes import compare
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import (
    Record,
    broker_change_record,
    decode_batch,
    encode_batch,
    partition_change_record,
    partition_record,
    remove_topic_record,
    topic_record,
)
from ottla.metadata.model.state import PartitionState

names = st.sampled_from(["a", "b", "c", "d.e"])
brokers = st.integers(0, 3)

commands = st.one_of(
    st.builds(lambda name, count: ask.CreateTopics([ask.NewTopic(name, count, 1)]), names, st.integers(1, 4)),
    st.builds(lambda name: ask.DeleteTopics([ask.TopicRef(name)]), names),
    st.builds(lambda name, count: ask.CreatePartitions([ask.NewPartitions(name, count)]), names, st.integers(1, 6)),
    st.builds(
        lambda name, key, value: ask.IncrementalAlterConfigs(
            [((2, name), [ask.SettingChange(key, 0 if value else 1, value)])]
        ),
        names,
        st.sampled_from(["x", "y"]),
        st.sampled_from(["1", "2", None]),
    ),
    st.builds(
        lambda broker, rack: ask.RegisterBroker(
            broker, uuid.UUID(int=broker + 1), "cluster", [], rack, features=SUPPORTED_FEATURES
        ),
        brokers,
        st.sampled_from(["r1", None]),
    ),
    st.builds(lambda broker: ask.UnregisterBroker(broker), brokers),
    st.builds(lambda broker: ("unfence", broker), brokers),
    st.builds(lambda broker: ("fence", broker), brokers),
    st.just(ask.UpdateFeatures([("metadata.version", 26, 2)])),
    st.builds(lambda broker: ("producer ids", broker), brokers),
)


def batches_of(steps: list[Any], random: Random) -> list[list[Record]]:
    """Records of the decisions that were not refused; each through its bytes."""
    image, batches = Image("cluster"), [initial_feature_records()]
    image, _ = image.apply(batches[0], version=1, epoch=1)
    for step in steps:
        context = ask.Context(
            now_ms=0,
            new_uuid=lambda: uuid.UUID(int=random.getrandbits(128), version=4),
            random=random,
            next_version=image.version + 1,
            supported_features=SUPPORTED_FEATURES,
        )
        try:
            decision = decide(image, _command(image, step), context)
        except Exception:
            continue
        if decision.records:
            batches.append(list(decode_batch(encode_batch(decision.records))))
            image, _ = image.apply(batches[-1], version=image.version + 1, epoch=1)
    return batches


def _command(image: Image, step: Any) -> ask.Command[Any]:
    if not isinstance(step, tuple):
        command: ask.Command[Any] = step
        return command
    kind, broker = step
    epoch = image.brokers[broker].epoch
    makers = {"unfence": ask.UnfenceBroker, "fence": ask.FenceBroker, "producer ids": ask.AllocateProducerIds}
    return makers[kind](broker, epoch)


@settings(max_examples=150, deadline=None)
@given(st.lists(commands, max_size=25), st.integers())
def test_all_ways_to_an_image_agree(steps: list[Any], seed: int) -> None:
    batches = batches_of(steps, Random(seed))
    image = Image("cluster")
    for version, records in enumerate(batches, 1):
        before = image
        image, changes = image.apply(records, version=version, epoch=1)
        assert_changes_say_it_all(before, image, changes)
    numbered = [(version, 1, records) for version, records in enumerate(batches, 1)]
    at_once, changes = Image("cluster").apply_batches(numbered)
    assert at_once == image
    assert_changes_say_it_all(Image("cluster"), at_once, changes)
    assert Image.from_snapshot(image.to_snapshot()) == image
    assert image.partition_count == sum(len(topic.partitions) for topic in image.topics.values())
    assert {topic.id: topic for topic in image.topics.values()} == image.topics_by_id


def assert_changes_say_it_all(old: Image, new: Image, changes: Any) -> None:
    """`apply` may name a thing that changed and changed back, never miss one."""
    found = compare(old, new)
    assert found.created == changes.created
    assert found.deleted == changes.deleted
    for topic, partitions in found.partitions.items():
        assert partitions <= changes.partitions[topic]
    assert found.configs <= changes.configs
    assert found.brokers <= changes.brokers
    assert found.features <= changes.features
    assert found.producer_ids <= changes.producer_ids
    assert changes.partitions.keys() <= new.topics_by_id.keys()


A, B = uuid.UUID(int=1), uuid.UUID(int=2)


def small_image() -> Image:
    state = PartitionState(0, (1, 2), (1, 2), 1)
    records = [topic_record(name="a", topic_id=A), partition_record(A, state)]
    return Image("cluster").apply(records, version=1, epoch=1)[0]


def test_a_change_leaves_the_old_image_alone() -> None:
    old = small_image()
    new, changes = old.apply([partition_change_record(A, 0, isr=[1], leader=1)], version=2, epoch=3)
    state = new.topics["a"].partitions[0]
    assert (state.isr, state.leader_epoch, state.partition_epoch, state.replicas) == ((1,), 1, 1, (1, 2))
    assert old.topics["a"].partitions[0].isr == (1, 2) and (old.version, old.epoch) == (1, 1)
    assert (new.version, new.epoch) == (2, 3)
    assert changes.partitions == {A: {0}} and not changes.created
    assert new.brokers is old.brokers and new.configs is old.configs


def test_an_empty_batch_only_moves_the_version() -> None:
    old = small_image()
    new, changes = old.apply([], version=9, epoch=2)
    assert not changes and new.version == 9 and new.topics is old.topics


def test_a_topic_made_again_in_one_call_is_both_deleted_and_created() -> None:
    old = small_image()
    again = [
        remove_topic_record(A),
        topic_record(name="a", topic_id=B),
        partition_record(B, PartitionState(0, (1,), (1,), 1)),
    ]
    new, changes = old.apply(again, version=2, epoch=1)
    assert (changes.deleted, changes.created, changes.partitions) == ({A: "a"}, {B: "a"}, {B: {0}})
    assert new.topics["a"].id == B and new.partition_count == 1


@pytest.mark.parametrize(
    "record",
    [
        topic_record(name="a", topic_id=B),
        topic_record(name="b", topic_id=A),
        remove_topic_record(B),
        partition_record(B, PartitionState(0, (1,), (1,), 1)),
        partition_record(A, PartitionState(5, (1,), (1,), 1)),
        partition_change_record(A, 1, leader=1),
        broker_change_record(broker_id=1, epoch=1, fenced=True),
        Record(),
    ],
)
def test_records_that_do_not_fit_are_refused(record: Record) -> None:
    with pytest.raises(MetadataError):
        small_image().apply([record], version=2, epoch=1)
