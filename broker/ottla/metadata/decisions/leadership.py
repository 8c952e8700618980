"""Requested elections: ElectLeaders, and moving a broker's leaders away. Pure."""

from collections.abc import Iterator

from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import (
    Context,
    Decision,
    ElectionType,
    ElectLeaders,
    MoveLeadersAway,
    Outcome,
    PartitionRef,
)
from ottla.metadata.decisions.elections import Election, change_record, changed
from ottla.metadata.decisions.topic_rules import rules_of
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import Record
from ottla.metadata.model.state import NO_LEADER, PartitionState

__all__ = ["elect", "move_away"]

_ELECTIONS = {ElectionType.PREFERRED: Election.PREFERRED, ElectionType.UNCLEAN: Election.UNCLEAN}
_FAILED = {
    ElectionType.PREFERRED: (Code.preferred_leader_not_available, "The preferred leader was not available."),
    ElectionType.UNCLEAN: (Code.eligible_leaders_not_available, "Eligible topic partition leaders are not available."),
}


def elect(image: Image, command: ElectLeaders, context: Context) -> Decision[list[Outcome[PartitionRef]]]:
    if command.election_type not in _ELECTIONS:
        raise KafkaError(Code.invalid_request, f"Unknown election type {command.election_type}")
    records: list[Record] = []
    outcomes = []
    for ref in _every_partition(image) if command.partitions is None else dict.fromkeys(command.partitions):
        try:
            records.append(_elect_one(image, ref, command.election_type, context))
        except KafkaError as error:
            # For all partitions, the answer omits those that need no election.
            if command.partitions is not None or error.code is not Code.election_not_needed:
                outcomes.append(Outcome(ref, error.code, error.message))
        else:
            outcomes.append(Outcome(ref))
    return Decision(outcomes, records)


def _every_partition(image: Image) -> Iterator[PartitionRef]:
    for topic in image.topics.values():
        for state in topic.partitions:
            yield topic.name, state.index


def _elect_one(image: Image, ref: PartitionRef, election_type: int, context: Context) -> Record:
    topic = image.topics.get(ref[0])
    state = image.partition(*ref)
    if topic is None:
        raise KafkaError(Code.unknown_topic_or_partition, f"No such topic as {ref[0]}")
    if state is None:
        raise KafkaError(Code.unknown_topic_or_partition, f"No such partition as {ref[0]}-{ref[1]}")
    if _is_content(state, election_type):
        raise KafkaError(Code.election_not_needed, "Leader election not needed for topic partition.")
    rules = rules_of(image, topic.name, context, election=_ELECTIONS[election_type])
    record = change_record(topic.id, state, changed(state, rules))
    if record is None:
        raise KafkaError(*_FAILED[election_type])
    return record


def _is_content(state: PartitionState, election_type: int) -> bool:
    if election_type == ElectionType.PREFERRED:
        return state.leader == state.replicas[0]
    return state.leader != NO_LEADER


def move_away(image: Image, command: MoveLeadersAway, context: Context) -> Decision[int]:
    """The reply is the number of partitions that the broker still leads, because no other in-sync replica can."""
    records: list[Record] = []
    left = 0
    for topic in image.topics.values():
        rules = rules_of(
            image,
            topic.name,
            context,
            may_lead=lambda each: each != command.broker_id and image.is_active(each),
            election=Election.ONLINE,
        )
        for state in (each for each in topic.partitions if each.leader == command.broker_id):
            new = changed(state, rules)
            record = change_record(topic.id, state, new) if new.leader in state.isr else None
            if record is None:
                left += 1
            else:
                records.append(record)
    return Decision(left, records)
