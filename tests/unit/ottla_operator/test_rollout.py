"""One pod at a time, the leader last, and only when the brokers agree."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla_operator.plans.rollout import FleetView, Verdict, outdated, plan_rollout
from support.operator_samples import SETS, STUCK, pod

FLEET = FleetView(leader=0, under_replicated=0, offline=0)
YES = {node_id: Verdict(True) for node_id in range(3)}


def _plan(pods, *, fleet=FLEET, verdicts=YES, wanted=3):
    return plan_rollout(pods, SETS, nodes_wanted=wanted, fleet=fleet, verdicts=verdicts)


def _restarted(pods, **more):
    chosen = _plan(pods, **more).restart
    return chosen.node_id if chosen else None


def test_nothing_to_do():
    assert _plan([pod(0), pod(1), pod(2)]).steps == ()


def test_the_leader_goes_last():
    old = [pod(node, revision="old") for node in range(3)]
    assert _restarted(old) == 1
    assert _restarted([old[0], pod(1), old[2]]) == 2
    assert _restarted([old[0], pod(1), pod(2)]) == 0


def test_the_leader_does_not_go_before_one_that_is_blocked():
    pods = [pod(0, revision="old"), pod(1, revision="old"), pod(2)]
    verdicts = {0: Verdict(True), 1: Verdict(False, ("clicks-0 would go below min ISR",))}
    plan = _plan(pods, verdicts=verdicts)
    assert plan.restart is None
    assert [(step.pod, step.verdict) for step in plan.steps] == [("set-1", "Blocked"), ("set-0", "Waiting")]
    assert plan.steps[0].blocked_by == ("clicks-0 would go below min ISR",)


@pytest.mark.parametrize(
    ("others", "more", "why"),
    [
        ([pod(1, ready=False), pod(2)], {}, "pod set-1 is not ready"),
        ([pod(1, terminating=True), pod(2)], {}, "pod set-1 is not ready"),
        ([pod(2)], {}, "1 pods are missing"),
        ([pod(1), pod(2)], {"fleet": None, "verdicts": {}}, "no controller answers"),
        (
            [pod(1), pod(2)],
            {"fleet": FleetView(leader=1, under_replicated=4, offline=0)},
            "4 partitions are not in sync",
        ),
        ([pod(1), pod(2)], {"verdicts": {}}, "the brokers have not said that it is safe"),
    ],
)
def test_what_a_pod_that_works_waits_for(others, more, why):
    plan = _plan([pod(0, revision="old"), *others], **more)
    assert plan.restart is None
    assert why in plan.steps[0].blocked_by


def test_one_that_cannot_come_back_by_itself_is_replaced_first_and_without_asking():
    pods = [pod(0, revision="old"), pod(1, revision="old"), pod(2, revision="old", ready=False, obstacle=STUCK)]
    assert _restarted(pods, fleet=None, verdicts={}) == 2
    assert _restarted([pods[0], pod(1, ready=False), pods[2]], verdicts={2: Verdict(False, ("no",))}) == 2


def test_one_that_is_merely_not_ready_waits_for_the_brokers_verdict():
    """It may serve clients, or be recovering while another is away."""
    recovering = pod(2, revision="old", ready=False)
    others = [pod(0, revision="old"), pod(1, revision="old")]
    no = {**YES, 2: Verdict(False, ("broker 2 is still recovering",))}
    assert _restarted([*others, recovering], fleet=None, verdicts={}) is None
    assert _restarted([*others, recovering], verdicts={}) is None
    assert _restarted([*others, recovering], verdicts=no) is None
    assert _restarted([others[0], pod(1, ready=False), recovering]) is None
    assert _restarted([others[0], recovering]) is None
    not_in_sync_without_it = FleetView(leader=0, under_replicated=3, offline=0)
    assert _restarted([*others, recovering], fleet=not_in_sync_without_it) == 2


PODS = st.builds(
    pod,
    st.integers(0, 4),
    revision=st.sampled_from(["old", "new"]),
    ready=st.booleans(),
    terminating=st.booleans(),
    obstacle=st.sampled_from([None, STUCK]),
    owner_uid=st.sampled_from(["set-uid", "another"]),
)
FLEETS = st.none() | st.builds(
    FleetView, leader=st.integers(-1, 4), under_replicated=st.integers(0, 2), offline=st.integers(0, 1)
)
VERDICTS = st.dictionaries(st.integers(0, 4), st.builds(Verdict, st.booleans(), st.tuples(st.just("why"))))


@given(st.lists(PODS, max_size=5, unique_by=lambda one: one.node_id), st.integers(1, 5), FLEETS, VERDICTS)
def test_no_plan_restarts_against_a_verdict_nor_a_pod_of_another(pods, wanted, fleet, verdicts):
    plan = plan_rollout(pods, SETS, nodes_wanted=wanted, fleet=fleet, verdicts=verdicts)
    chosen = plan.restart
    if chosen is None:
        return
    others = [one for one in pods if one is not chosen]
    assert chosen.owner_uid == SETS[0].uid and chosen.revision == "old"
    assert not any(one.terminating for one in pods), "one at a time"
    assert [step.pod for step in plan.steps if step.verdict == "Restarting"] == [chosen.name]
    if chosen.obstacle is not None and not chosen.ready:
        return  # nothing runs in it
    assert fleet is not None and verdicts[chosen.node_id].yes
    assert all(one.ready for one in others) and len(pods) >= wanted
    assert not chosen.ready or fleet.under_replicated == 0


def test_never_two_at_a_time():
    pods = [pod(0, revision="old"), pod(1, revision="old", ready=False), pod(2, revision="old", terminating=True)]
    plan = _plan(pods)
    assert plan.restart is None
    assert plan.steps[0].pod == "set-2" and plan.steps[0].verdict == "Restarting"


def test_why_a_pod_is_outdated():
    assert outdated([pod(0, revision="old")], SETS) == {"set-0": "the configuration has changed"}
    other_image = pod(0, revision="old", config_hash="new", image="broker:0")
    assert outdated([other_image], SETS) == {"set-0": "the image has changed to broker:1"}
    assert outdated([pod(0, set_name="another", revision="old")], SETS) == {}


def test_no_restart_before_kubernetes_has_seen_the_new_template():
    unseen = [type(SETS[0])(name="set", uid="set-uid", revision="", config_hash="new", image="broker:1")]
    assert outdated([pod(0, revision="old")], unseen) == {}
    assert plan_rollout([pod(0)], unseen, nodes_wanted=1, fleet=FLEET, verdicts={}).unseen == 1
