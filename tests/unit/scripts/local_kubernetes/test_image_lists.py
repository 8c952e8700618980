"""Which archives count as loaded after an import."""

from pathlib import Path

from scripts.local_kubernetes.image_store import newest


def test_another_digest_of_an_image_replaces_the_older_one() -> None:
    there = ["broker-1111.tar", "spark-3333.tar"]
    assert newest(there, [Path("/images/broker-2222.tar")]) == ["broker-2222.tar", "spark-3333.tar"]


def test_going_back_to_an_older_digest_is_a_change_too() -> None:
    back = newest(newest(["broker-1.tar"], [Path("broker-2.tar")]), [Path("broker-1.tar")])
    assert back == ["broker-1.tar"]
