"""Whose an object is, and what Kubernetes refused."""

import pytest
from ottla_operator.manifests.disruption_budget import disruption_budget
from ottla_operator.plans.ownership import Ownership, name_taken, ownership
from ottla_operator.plans.refusals import creation_obstacle, refusal
from support.operator_samples import UID, cluster

WANTED = disruption_budget(cluster())
OWNER = WANTED["metadata"]["ownerReferences"][0]
MARKED = {"labels": {"ottla.dev/cluster": "events"}, "annotations": {"ottla.dev/applied": "x"}}


@pytest.mark.parametrize(
    ("metadata", "whose"),
    [
        ({"ownerReferences": [OWNER]}, Ownership.OURS),
        ({"ownerReferences": [{**OWNER, "uid": UID.replace("6f", "00")}]}, Ownership.FORMER),
        ({"ownerReferences": [{**OWNER, "kind": "Deployment", "uid": "1"}], **MARKED}, Ownership.FOREIGN),
        ({"ownerReferences": [{**OWNER, "controller": False}]}, Ownership.FOREIGN),
        (MARKED, Ownership.OURS),
        ({"labels": MARKED["labels"]}, Ownership.FOREIGN),
        ({**MARKED, "labels": {"ottla.dev/cluster": "other"}}, Ownership.FOREIGN),
        ({}, Ownership.FOREIGN),
    ],
)
def test_whose_an_object_is(metadata, whose):
    assert ownership({"metadata": {"name": "events-brokers", **metadata}}, WANTED) is whose


def test_the_obstacle_names_the_object_its_owner_and_a_way_out():
    owner = {"kind": "Release", "name": "shop", "uid": "1", "controller": True}
    body = {"kind": "Service", "metadata": {"name": "x", "namespace": "default", "ownerReferences": [owner]}}
    text = name_taken(body).message
    assert "Service x in namespace default belongs to Release shop" in text and "another name" in text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('pods "a" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2', "QuotaExceeded"),
        ('pods "a" is forbidden: failed quota: small: must specify limits.cpu', "QuotaExceeded"),
        ('pods "a" is forbidden: violates PodSecurity "restricted:latest": …', "PodSecurity"),
        ("services is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no", "AdmissionDenied"),
        ('admission webhook "policy.example" denied the request: no', "AdmissionDenied"),
        ('User "system:serviceaccount:o:o" cannot patch resource "services"', "Forbidden"),
        ('StatefulSet.apps "a" is invalid: spec: Forbidden: updates', "Refused"),
    ],
)  # fmt: skip
def test_a_refusal_says_whose_rule_it_was(text, reason):
    found = refusal(text)
    assert found.reason == reason and text in found.message


def _event(reason: str, moment: str, **more):
    return {"reason": reason, "message": "exceeded quota: small", "lastTimestamp": moment, **more}


def test_the_newest_event_says_whether_pods_are_made():
    failed, made = _event("FailedCreate", "2026-01-01T00:00:01Z"), _event("SuccessfulCreate", "2026-01-01T00:00:02Z")
    again = _event("FailedCreate", None, series={"lastObservedTime": "2026-01-01T00:00:03.5Z"})
    assert creation_obstacle([]) is None and creation_obstacle([failed, made]) is None
    assert creation_obstacle([made, failed, again]).reason == "QuotaExceeded"
