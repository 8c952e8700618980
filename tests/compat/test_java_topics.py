"""kafka-topics (TopicCommand), unmodified."""

import re

import pytest
from support.java import Finished, java_tool


def topics(bootstrap: str, *arguments: str, code: int = 0) -> Finished:
    return java_tool("org.apache.kafka.tools.TopicCommand", "--bootstrap-server", bootstrap, *arguments, code=code)


def test_life_of_a_topic(bootstrap: str, name: str) -> None:
    made = topics(bootstrap, "--create", "--topic", name, "--partitions", "2", "--config", "segment.ms=600000")
    assert made.lines == [f"Created topic {name}."]
    assert name in topics(bootstrap, "--list").lines

    head, *partitions = topics(bootstrap, "--describe", "--topic", name).lines
    assert re.match(rf"Topic: {name}\s+TopicId: [\w-]{{22}}\s+PartitionCount: 2\s+ReplicationFactor: 1\s", head)
    assert re.search(r"Configs: .*\bsegment\.ms=600000", head)
    assert [re.split(r"\s+", line)[:10] for line in partitions] == [
        ["Topic:", name, "Partition:", str(number), "Leader:", "1", "Replicas:", "1", "Isr:", "1"] for number in (0, 1)
    ]

    topics(bootstrap, "--alter", "--topic", name, "--partitions", "4")
    assert "PartitionCount: 4" in topics(bootstrap, "--describe", "--topic", name).out
    shrunk = topics(bootstrap, "--alter", "--topic", name, "--partitions", "2", code=1)
    assert f"The topic {name} currently has 4 partition(s); 2 would not be an increase." in shrunk.out

    topics(bootstrap, "--delete", "--topic", name)
    assert f"Topic '{name}' does not exist as expected" in topics(bootstrap, "--delete", "--topic", name, code=1).out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (
            ["--topic", "bad name"],
            "'bad name' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'",
        ),
        (
            ["--topic", "b1", "--config", "retention.ms=soon"],
            "Invalid value soon for configuration retention.ms: Not a number of type LONG",
        ),
        (
            ["--topic", "b2", "--replication-factor", "3"],
            "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached "
            "because only 1 broker(s) are registered.",
        ),
    ],
    ids=["name", "config", "replication"],
)
def test_bad_topics_are_refused_in_kafkas_words(bootstrap: str, arguments: list[str], complaint: str) -> None:
    assert complaint in topics(bootstrap, "--create", *arguments, code=1).out


def test_existing_and_colliding_names(bootstrap: str) -> None:
    topics(bootstrap, "--create", "--topic", "col.lide")
    assert "Topic 'col.lide' already exists." in topics(bootstrap, "--create", "--topic", "col.lide", code=1).out
    assert "collide" in topics(bootstrap, "--create", "--topic", "col_lide", code=1).out
    topics(bootstrap, "--create", "--if-not-exists", "--topic", "col.lide")
