"""Zones, id blocks and cluster ids: decided once."""

import pytest
from ottla_operator.plans.layout import Layout, NodeSet, Record, plan_layout
from ottla_operator.plans.obstacle import Obstacle
from ottla_operator.plans.zones import NO_ZONE
from support.operator_samples import UID, ZONES, cluster, zones_everywhere


def _layout(one, records, zones) -> Layout:
    layout = plan_layout(one, records, zones_everywhere(*zones))
    assert isinstance(layout, Layout), layout
    return layout


def _counts(layout: Layout) -> dict[tuple[str, str], tuple[int, int]]:
    return {(one.pool, one.zone): (one.first_id, one.nodes) for one in layout.sets}


def test_three_nodes_in_three_zones():
    assert _counts(_layout(cluster(), [], ZONES)) == {
        ("main", "zone-a"): (0, 1),
        ("main", "zone-b"): (100, 1),
        ("main", "zone-c"): (200, 1),
    }


def test_pools_fill_up_each_others_gaps():
    pools = [{"name": "one", "replicas": 4}, {"name": "two", "replicas": 2}]
    counts = _counts(_layout(cluster(pools=pools), [], ZONES))
    assert [counts["one", zone][1] for zone in ZONES] == [2, 1, 1]
    assert ("two", "zone-a") not in counts
    assert counts["two", "zone-b"] == (300, 1)


def test_without_racks_there_is_one_set():
    assert _counts(_layout(cluster(racks=None), [], [NO_ZONE])) == {("main", ""): (0, 3)}


def _records(layout: Layout) -> list[Record]:
    return [
        Record(cluster_id=layout.cluster_id, pool=one.pool, zone=one.zone, first_id=one.first_id, nodes=one.nodes)
        for one in layout.sets
    ]


@pytest.mark.parametrize("zones", [ZONES, (), ("zone-a",), (*ZONES, "zone-0"), ("other",)])
def test_what_is_recorded_is_not_decided_again(zones):
    first = _layout(cluster(), [], ZONES)
    again = cluster()
    again = type(again)(metadata=type(again.metadata)(name="events", uid=UID.replace("6f", "00")), spec=again.spec)
    assert _layout(again, _records(first), zones) == first


def test_growth_keeps_what_is_there_and_goes_where_fewest_are():
    first = _layout(cluster(), [], ZONES)
    grown = _layout(cluster(pools=[{"name": "main", "replicas": 5}]), _records(first), ZONES)
    assert grown.sets == (
        NodeSet(pool="main", zone="zone-a", first_id=0, nodes=2),
        NodeSet(pool="main", zone="zone-b", first_id=100, nodes=2),
        NodeSet(pool="main", zone="zone-c", first_id=200, nodes=1),
    )


def test_blocks_of_forgotten_pools_stay_taken():
    old = Record(cluster_id="x", pool="gone", zone="zone-a", first_id=400, nodes=1)
    assert [one.first_id for one in _layout(cluster(), [old], ZONES).sets] == [500, 600, 700]


@pytest.mark.parametrize(
    ("records", "zones", "reason"),
    [
        ([], (), "NoNodes"),
        ([("a", 0, 1), ("b", 0, 1)], ZONES, "ConflictingVolumes"),
        ([("a", 0, 4)], ZONES, "VolumesOfMoreNodes"),
    ],
)
def test_obstacles(records, zones, reason):
    made = [Record(cluster_id=c, pool="main", zone="zone-a", first_id=f, nodes=n) for c, f, n in records]
    layout = plan_layout(cluster(), made, zones_everywhere(*zones))
    assert isinstance(layout, Obstacle) and layout.reason == reason


def test_the_cluster_id_is_kafkas_and_no_option():
    uid = "f8000000-0000-4000-8000-000000000000"  # its base64 begins with a dash
    odd = cluster()
    odd = type(odd)(metadata=type(odd.metadata)(name="events", uid=uid), spec=odd.spec)
    made = _layout(odd, [], ZONES).cluster_id
    assert len(made) == 22 and not made.startswith("-")
    assert len(_layout(cluster(), [], ZONES).cluster_id) == 22
