"""Partition reassignments. Pure.

    requested                replicas = target + those to remove; `adding` and `removing` tell them apart
    target all in sync       replicas = target (see elections: any change of the isr may complete it)
    cancelled                replicas = those without `adding`

The partition's state has all of it, so another controller can continue.
"""

from collections.abc import Iterator, Mapping, Sequence

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.assignments import bad_assignment, check_replicas
from ottla.metadata.decisions.commands import AlterReassignments, Context, Decision, Outcome, PartitionRef, Reassignment
from ottla.metadata.decisions.elections import Election, change_record, changed
from ottla.metadata.decisions.topic_rules import allows_unclean_election, rules_of
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import Record
from ottla.metadata.model.state import PartitionState, Topic

__all__ = ["alter", "is_moving", "lasting_replicas", "ongoing"]


def is_moving(state: PartitionState) -> bool:
    return bool(state.adding or state.removing)


def lasting_replicas(state: PartitionState) -> tuple[int, ...]:
    """The replicas after the reassignment."""
    return tuple(each for each in state.replicas if each not in state.removing)


def ongoing(
    image: Image, asked: Mapping[str, Sequence[int]] | None = None
) -> Iterator[tuple[Topic, list[PartitionState]]]:
    """Topics with the partitions that are being reassigned: all, or those in `asked` (topic → partition numbers)."""
    for name in image.topics if asked is None else asked:
        topic = image.topics.get(name)
        if topic is None:
            continue
        found = topic.partitions if asked is None else filter(None, (image.partition(name, i) for i in asked[name]))
        moving = [state for state in found if is_moving(state)]
        if moving:
            yield topic, moving


def alter(image: Image, command: AlterReassignments, context: Context) -> Decision[list[Outcome[PartitionRef]]]:
    records: list[Record] = []
    outcomes = []
    done: set[PartitionRef] = set()
    for wanted in command.partitions:
        ref = (wanted.topic, wanted.index)
        try:
            if ref in done:
                raise KafkaError(Code.invalid_request, f"{wanted.topic}-{wanted.index} is named more than once.")
            done.add(ref)
            records += _alter_one(image, wanted, command, context)
        except KafkaError as error:
            outcomes.append(Outcome(ref, error.code, error.message))
        else:
            outcomes.append(Outcome(ref))
    return Decision(outcomes, records)


def _alter_one(image: Image, wanted: Reassignment, command: AlterReassignments, context: Context) -> Iterator[Record]:
    topic = image.topics.get(wanted.topic)
    if topic is None:
        raise KafkaError(Code.unknown_topic_or_partition, f"Unable to find a topic named {wanted.topic}.")
    state = image.partition(wanted.topic, wanted.index)
    if state is None:
        raise KafkaError(Code.unknown_topic_or_partition, f"Unable to find partition {wanted.topic}:{wanted.index}.")
    if wanted.replicas is None:
        new = _cancelled(image, topic, state, context)
    else:
        target = tuple(wanted.replicas)
        check_replicas(image, target)
        if not command.allow_replication_factor_change:
            _check_same_factor(state, target)
        new = _moving_to(image, topic, state, target, context)
    record = change_record(topic.id, state, new)
    if record is not None:
        yield record


def _check_same_factor(state: PartitionState, target: Sequence[int]) -> None:
    factor = len(lasting_replicas(state))
    if factor != len(target):
        raise KafkaError(
            Code.invalid_replication_factor, f"The replication factor is changed from {factor} to {len(target)}"
        )


def _moving_to(
    image: Image, topic: Topic, state: PartitionState, target: tuple[int, ...], context: Context
) -> PartitionState:
    """A replica that an earlier reassignment was adding stays in `adding` even if it is removed now: a cancel drops
    it."""
    removing = tuple(sorted(set(state.replicas) - set(target)))
    adding = tuple(sorted({*state.adding, *target} - (set(state.replicas) - set(state.adding))))
    rules = rules_of(image, topic.name, context, election=Election.ONLINE)
    return changed(state, rules, replicas=target + removing, adding=adding, removing=removing)


def _cancelled(image: Image, topic: Topic, state: PartitionState, context: Context) -> PartitionState:
    if not is_moving(state):
        raise KafkaError(Code.no_reassignment_in_progress)
    original = tuple(each for each in state.replicas if each not in state.adding)
    in_sync = tuple(each for each in state.isr if each not in state.adding)
    if state.isr and not in_sync and not _can_go_back(image, topic, state, original, context):
        raise bad_assignment(
            f"Unable to revert partition assignment for {topic.name}:{state.index} because it would require an "
            "unclean leader election."
        )
    return changed(state, rules_of(image, topic.name, context), replicas=original, isr=in_sync, adding=(), removing=())


def _can_go_back(image: Image, topic: Topic, state: PartitionState, original: Sequence[int], context: Context) -> bool:
    eligible = any(each in original and image.is_active(each) for each in state.elr)
    return eligible or allows_unclean_election(image, topic.name, context)
