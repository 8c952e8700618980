"""ACLs as Kafka's own tool and librdkafka keep them: made, found by every kind of filter, removed.

Everybody is a super user here: this is about what is kept, not about what it forbids.
"""

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kio.schema.create_acls.v3 import request as create
from kio.schema.create_acls.v3.response import CreateAclsResponse
from kio.static.primitive import i8
from support.frames import Connection
from support.java import java_tool
from support.waiting import eventually

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
BROKER_SETTINGS = {"authorizer.class.name": AUTHORIZER, "super.users": "User:ANONYMOUS"}
ACLS = "org.apache.kafka.tools.AclCommand"
DEADLINE_S = 30


@pytest.fixture
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def binding(name: str, principal: str, pattern: ResourcePatternType = ResourcePatternType.LITERAL) -> AclBinding:
    return AclBinding(ResourceType.TOPIC, name, pattern, principal, "*", AclOperation.READ, AclPermissionType.ALLOW)


def names(admin: AdminClient, name: str | None, pattern: ResourcePatternType) -> list[str]:
    wanted = AclBindingFilter(
        ResourceType.TOPIC, name, pattern, "User:filters", None, AclOperation.ANY, AclPermissionType.ANY
    )
    return sorted(each.name for each in admin.describe_acls(wanted).result(DEADLINE_S))


def expect(admin: AdminClient, name: str | None, pattern: ResourcePatternType, found: list[str]) -> None:
    """A broker of a fleet may learn of a change a moment later."""
    eventually(lambda: names(admin, name, pattern), lambda seen: seen == found)


def test_the_tool_adds_lists_and_removes(bootstrap: str) -> None:
    def acls(*arguments: str) -> str:
        return java_tool(ACLS, "--bootstrap-server", bootstrap, *arguments).out

    added = acls(
        "--add",
        "--allow-principal",
        "User:alice",
        "--producer",
        "--topic",
        "tool-",
        "--resource-pattern-type",
        "prefixed",
    )
    assert "(principal=User:alice, host=*, operation=WRITE, permissionType=ALLOW)" in added
    listed = acls("--list", "--topic", "tool-orders", "--resource-pattern-type", "match")
    assert "patternType=PREFIXED" in listed
    assert {line.split("operation=")[1].split(",")[0] for line in listed.splitlines() if "operation=" in line} == {
        "WRITE", "DESCRIBE", "CREATE"
    }  # fmt: skip
    acls("--remove", "--force", "--topic", "tool-", "--resource-pattern-type", "prefixed")
    assert "operation=" not in acls("--list", "--topic", "tool-orders", "--resource-pattern-type", "match")


def test_filters_find_by_pattern(admin: AdminClient) -> None:
    made = [
        binding("filter-orders", "User:filters"),
        binding("filter-", "User:filters", ResourcePatternType.PREFIXED),
        binding("*", "User:filters"),
        binding("other", "User:filters"),
    ]
    for done in admin.create_acls(made).values():
        done.result(DEADLINE_S)
    expect(admin, "filter-orders", ResourcePatternType.LITERAL, ["filter-orders"])
    expect(admin, "filter-orders", ResourcePatternType.MATCH, ["*", "filter-", "filter-orders"])
    expect(admin, "filter-", ResourcePatternType.ANY, ["filter-"])
    expect(admin, None, ResourcePatternType.PREFIXED, ["filter-"])
    expect(admin, None, ResourcePatternType.ANY, ["*", "filter-", "filter-orders", "other"])
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, "User:filters", None, AclOperation.ANY, AclPermissionType.ANY
    )
    (removed,) = admin.delete_acls([everything]).values()
    assert len(removed.result(DEADLINE_S)) == 4
    expect(admin, None, ResourcePatternType.ANY, [])


TOPIC, GROUP, CLUSTER, LITERAL, PREFIXED, READ, ALLOW = 2, 3, 4, 3, 4, 3, 3


def creation(**changes: object) -> create.AclCreation:
    fields: dict[str, object] = {
        "resource_type": i8(TOPIC), "resource_name": "codes", "resource_pattern_type": i8(LITERAL),
        "principal": "User:codes", "host": "*", "operation": i8(READ), "permission_type": i8(ALLOW),
    }  # fmt: skip
    return create.AclCreation(**{**fields, **changes})  # type: ignore[arg-type]


REFUSED = {
    "resource type 99": creation(resource_type=i8(99)),
    "operation 99": creation(operation=i8(99)),
    "empty name": creation(resource_name=""),
    "another cluster": creation(resource_type=i8(CLUSTER), resource_name="mine"),
    "good": creation(),
    "good again": creation(),
}
SENTENCES = {
    "resource type 99": (42, "Invalid resourceType UNKNOWN"),
    "operation 99": (42, "Invalid operation UNKNOWN"),
    "empty name": (42, "Invalid empty resource name"),
    "another cluster": (42, "The only valid name for the CLUSTER resource is kafka-cluster"),
    "good": (0, ""),
    "good again": (0, ""),
}


def test_what_is_refused_is_refused_line_by_line(bootstrap: str) -> None:
    with Connection(int(bootstrap.rsplit(":", 1)[1])) as connection:
        answer = connection.ask(create.CreateAclsRequest(creations=tuple(REFUSED.values())), CreateAclsResponse)
        results = dict(zip(REFUSED, answer.results, strict=True))
        assert {each: (int(results[each].error_code), results[each].error_message) for each in SENTENCES} == SENTENCES
