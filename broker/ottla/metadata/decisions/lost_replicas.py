"""Decisions about replicas in a failed log dir of a live broker. Pure."""

from ottla.metadata.decisions.brokers import check_broker_epoch
from ottla.metadata.decisions.commands import Context, Decision, ReplicasLost
from ottla.metadata.decisions.elections import change_record, changed
from ottla.metadata.decisions.topic_rules import rules_of
from ottla.metadata.model.image import Image
from ottla.metadata.model.records import Record

__all__ = ["lose"]


def lose(image: Image, command: ReplicasLost, context: Context) -> Decision[None]:
    """Remove them from isr and elr; they cannot lead until the broker registers again."""
    broker_id = check_broker_epoch(image, command.broker_id, command.broker_epoch).id
    records: list[Record] = []
    for topic_id, index in dict.fromkeys(command.partitions):
        topic = image.topics_by_id.get(topic_id)
        state = None if topic is None else image.partition(topic.name, index)
        if topic is None or state is None or broker_id not in state.replicas:
            continue  # deleted or moved meanwhile
        in_sync = tuple(each for each in state.isr if each != broker_id)
        rules = rules_of(image, topic.name, context)
        new = changed(state, rules, isr=in_sync, unclean_shutdown={broker_id}, lost={broker_id})
        record = change_record(topic.id, state, new)
        if record is not None:
            records.append(record)
    return Decision(None, records)
