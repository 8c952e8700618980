"""Which pod is restarted next, and why the others are not. Pure.

One at a time. First those in which nothing runs and nothing will by itself: no image, no node, a crash loop. Then those
that are not ready, then brokers by their ids; the leader of the quorum last, so that it moves once. Of all but the
first the brokers say whether a restart is safe: one that is not ready may serve clients for all that Kubernetes knows,
or be the one that the others wait for. Everything must be in sync again before one that works is restarted.
"""

from collections.abc import Mapping, Sequence

import msgspec

from ottla_operator.plans.observed import ObservedPod, ObservedSet
from ottla_operator.resources.kafka_cluster import RolloutStep

__all__ = ["BLOCKERS_SHOWN_MAX", "FleetView", "Rollout", "Verdict", "outdated", "plan_rollout"]

BLOCKERS_SHOWN_MAX = 5


class FleetView(msgspec.Struct, frozen=True, kw_only=True):
    """The fleet as its controller sees it."""

    leader: int
    under_replicated: int
    offline: int
    fenced: tuple[int, ...] = ()


class Verdict(msgspec.Struct, frozen=True):
    """The brokers' answer to: may this one be restarted?"""

    yes: bool
    blocked_by: tuple[str, ...] = ()


class Rollout(msgspec.Struct, frozen=True):
    """`unseen`: sets whose newest template Kubernetes has not processed yet, so that their pods cannot be compared."""

    steps: tuple[RolloutStep, ...] = ()
    restart: ObservedPod | None = None
    unseen: int = 0


def outdated(pods: Sequence[ObservedPod], sets: Sequence[ObservedSet]) -> dict[str, str]:
    """Pod → why it is not what its set would make now."""
    wanted = {one.name: one for one in sets}
    reasons = {}
    for pod in pods:
        one = wanted.get(pod.set_name)
        if one is None or pod.owner_uid != one.uid or not one.revision or pod.revision == one.revision:
            continue
        if pod.config_hash != one.config_hash:
            reasons[pod.name] = "the configuration has changed"
        elif pod.image != one.image:
            reasons[pod.name] = f"the image has changed to {one.image}"
        else:
            reasons[pod.name] = "the pod template has changed"
    return reasons


def plan_rollout(
    pods: Sequence[ObservedPod],
    sets: Sequence[ObservedSet],
    *,
    nodes_wanted: int,
    fleet: FleetView | None,
    verdicts: Mapping[int, Verdict],
) -> Rollout:
    """`fleet` is None when no controller answers; `verdicts` are by node id."""
    reasons = outdated(pods, sets)
    leader = fleet.leader if fleet else -1
    order = sorted(
        (pod for pod in pods if pod.name in reasons),
        key=lambda pod: (not pod.terminating, not pod.is_stuck, pod.ready, pod.node_id == leader, pod.node_id),
    )
    chosen: ObservedPod | None = None
    steps = []
    for pod in order:
        against = _against(pod, pods, nodes_wanted=nodes_wanted, fleet=fleet, verdict=verdicts.get(pod.node_id))
        is_its_turn = pod.is_stuck or pod.node_id != leader or len(order) == 1  # the leader of the quorum comes last
        if pod.terminating:
            steps.append(RolloutStep(pod=pod.name, reason=reasons[pod.name], verdict="Restarting"))
        elif not against and is_its_turn and chosen is None and not any(each.terminating for each in pods):
            chosen = pod
            steps.append(RolloutStep(pod=pod.name, reason=reasons[pod.name], verdict="Restarting"))
        else:
            verdict = "Blocked" if against else "Waiting"
            steps.append(RolloutStep(pod=pod.name, reason=reasons[pod.name], verdict=verdict, blocked_by=against))
    return Rollout(tuple(steps), chosen, unseen=sum(not one.revision for one in sets))


def _against(
    pod: ObservedPod,
    pods: Sequence[ObservedPod],
    *,
    nodes_wanted: int,
    fleet: FleetView | None,
    verdict: Verdict | None,
) -> tuple[str, ...]:
    """What speaks against restarting it. Nothing does where nothing runs: that is how a bad image or setting is mended.

    Partitions that are not in sync because this pod is not ready would never be: there the verdict alone decides.
    """
    if pod.is_stuck:
        return ()
    down = sorted(each.name for each in pods if each is not pod and (not each.ready or each.terminating))
    found = [f"pod {name} is not ready" for name in down]
    if len(pods) < nodes_wanted:
        found.append(f"{nodes_wanted - len(pods)} pods are missing")
    if fleet is None:
        found.append("no controller answers")
    elif fleet.under_replicated and pod.ready:
        found.append(f"{fleet.under_replicated} partitions are not in sync")
    if verdict is not None and not verdict.yes:
        found += verdict.blocked_by or ("the brokers say that it is not safe",)
    elif verdict is None and not found:
        found.append("the brokers have not said that it is safe")
    return tuple(found)[:BLOCKERS_SHOWN_MAX]
