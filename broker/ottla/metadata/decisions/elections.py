"""How one partition changes: its in-sync and eligible replicas, its leader, the end of a reassignment. Pure. (KIP-966)

    isr              replicas with every committed record; may be empty
    elr              replicas that left the isr while it was smaller than min.insync.replicas: no record was committed
                     since, so they have all of them too, unless they shut down uncleanly
    last_known_elr   the last leader, while there is none: the best choice when both sets are empty

The leader epoch rises when the leader changes or a replica is removed; the partition epoch with every change.
"""

import enum
import uuid
from collections.abc import Callable, Set

import msgspec

from ottla.metadata.model.records import Record, partition_change_record
from ottla.metadata.model.state import DIRECTORY_LOST, NO_LEADER, PartitionState

__all__ = ["Election", "Rules", "change_record", "changed"]

_NOBODY: Set[int] = frozenset()


class Election(enum.Enum):
    ONLINE = "any replica with all committed records; the current leader first"
    PREFERRED = "the same, but the first replica before the current leader"
    UNCLEAN = "if no replica has all committed records, any replica"


class Rules(msgspec.Struct, frozen=True):
    """The rules for a change of a partition. Without `elr_enabled` the last in-sync replica never leaves the set."""

    may_lead: Callable[[int], bool]
    isr_size_min: int
    directory_for: Callable[[int], uuid.UUID]
    elr_enabled: bool = True
    election: Election = Election.ONLINE


def changed(
    state: PartitionState,
    rules: Rules,
    *,
    isr: tuple[int, ...] | None = None,
    replicas: tuple[int, ...] | None = None,
    adding: tuple[int, ...] | None = None,
    removing: tuple[int, ...] | None = None,
    unclean_shutdown: Set[int] = _NOBODY,
    lost: Set[int] = _NOBODY,
) -> PartitionState:
    """The partition after the requested change and its consequences; the same object if nothing changes.

    `unclean_shutdown`: replicas to remove from the ELR. `lost`: replicas in a failed log dir.
    """
    rules = _without(rules, lost | set(state.lost))
    wanted = {"isr": isr, "replicas": replicas, "adding": adding, "removing": removing}
    target = msgspec.structs.replace(state, **{name: ids for name, ids in wanted.items() if ids is not None})
    target = _with_reassignment_done(target)
    target = msgspec.structs.replace(target, elr=_eligible(state, target, rules, unclean_shutdown))
    target = _with_reassignment_done(_with_leader(state, target, rules))
    target = msgspec.structs.replace(
        target,
        last_known_elr=_last_known(state, target, rules),
        directories=_directories(state, target, rules, lost),
    )
    return _with_epochs(state, target)


def change_record(topic_id: uuid.UUID, old: PartitionState, new: PartitionState) -> Record | None:
    if new == old:
        return None
    lists = ("replicas", "isr", "adding", "removing", "elr", "last_known_elr")
    return partition_change_record(
        topic_id,
        old.index,
        leader=new.leader if new.leader_epoch != old.leader_epoch else None,
        directories=new.directories if new.directories != old.directories else None,
        **{name: getattr(new, name) for name in lists if getattr(new, name) != getattr(old, name)},
    )


# -- replicas


def _with_reassignment_done(target: PartitionState) -> PartitionState:
    """Complete a reassignment: when all target replicas are in sync, remove the others."""
    if not target.adding and not target.removing:
        return target
    replicas = tuple(each for each in target.replicas if each not in target.removing)
    if not replicas or not set(replicas) <= set(target.isr):
        return target
    in_sync = tuple(each for each in target.isr if each not in target.removing)
    return msgspec.structs.replace(target, replicas=replicas, isr=in_sync, elr=(), adding=(), removing=())


def _directories(state: PartitionState, target: PartitionState, rules: Rules, lost: Set[int]) -> tuple[uuid.UUID, ...]:
    if target.replicas == state.replicas and not lost:
        return state.directories
    known = dict(zip(state.replicas, state.directories, strict=False)) | dict.fromkeys(lost, DIRECTORY_LOST)
    return tuple(known[each] if each in known else rules.directory_for(each) for each in target.replicas)


def _without(rules: Rules, lost: Set[int]) -> Rules:
    if not lost:
        return rules
    return msgspec.structs.replace(rules, may_lead=lambda each: each not in lost and rules.may_lead(each))


def _eligible(
    state: PartitionState, target: PartitionState, rules: Rules, unclean_shutdown: Set[int]
) -> tuple[int, ...]:
    if not rules.elr_enabled or _is_large_enough(target, rules):
        return ()
    before = dict.fromkeys((*state.elr, *state.isr))
    gone = unclean_shutdown | set(target.isr)
    return tuple(each for each in before if each in target.replicas and each not in gone)


def _is_large_enough(target: PartitionState, rules: Rules) -> bool:
    """Whether the isr is large enough to commit records that other replicas do not have."""
    return len(target.isr) >= min(rules.isr_size_min, len(target.replicas))


# -- the leader


def _with_leader(state: PartitionState, target: PartitionState, rules: Rules) -> PartitionState:
    leader = _clean_leader(state, target, rules)
    if leader in target.isr:
        return msgspec.structs.replace(target, leader=leader)
    if leader != NO_LEADER:
        return _led_by_eligible(target, leader, rules)
    leader = _unclean_leader(state, target, rules)
    if leader != NO_LEADER:
        return msgspec.structs.replace(target, leader=leader, isr=(leader,), elr=())
    in_sync = target.isr or (() if rules.elr_enabled else tuple(x for x in state.isr if x in target.replicas))
    return msgspec.structs.replace(target, leader=NO_LEADER, isr=in_sync)


def _clean_leader(state: PartitionState, target: PartitionState, rules: Rules) -> int:
    """A leader from the isr; from the elr only if no member of the isr can lead."""
    for pool in (target.isr, target.elr):
        able = [each for each in target.replicas if each in pool and rules.may_lead(each)]
        if not able:
            continue
        if rules.election is Election.PREFERRED and able[0] == target.replicas[0]:
            return able[0]
        return state.leader if state.leader in able else able[0]
    return NO_LEADER


def _led_by_eligible(target: PartitionState, leader: int, rules: Rules) -> PartitionState:
    """The new isr has only the leader; the others stay in the ELR unless records can be committed without them now."""
    alone = msgspec.structs.replace(target, leader=leader, isr=(leader,))
    others = tuple(each for each in (*target.elr, *target.isr) if each != leader)
    return msgspec.structs.replace(alone, elr=() if _is_large_enough(alone, rules) else others)


def _unclean_leader(state: PartitionState, target: PartitionState, rules: Rules) -> int:
    """Replicas that a reassignment is adding have the fewest records: they come last."""
    able = sorted(filter(rules.may_lead, target.replicas), key=target.adding.__contains__)
    last = state.last_known_elr
    if rules.elr_enabled and not target.isr and not target.elr and len(last) == 1 and last[0] in able:
        return last[0]
    return able[0] if able and rules.election is Election.UNCLEAN else NO_LEADER


def _last_known(state: PartitionState, target: PartitionState, rules: Rules) -> tuple[int, ...]:
    if not rules.elr_enabled or target.leader != NO_LEADER:
        return ()
    last = state.last_known_elr if state.leader == NO_LEADER else (state.leader,)
    return tuple(each for each in last if each in target.replicas)


def _with_epochs(state: PartitionState, target: PartitionState) -> PartitionState:
    if target == state:
        return state
    new_term = target.leader != state.leader or not set(state.replicas) <= set(target.replicas)
    return msgspec.structs.replace(
        target, leader_epoch=state.leader_epoch + new_term, partition_epoch=state.partition_epoch + 1
    )
