"""The administration of any Kafka for people at a terminal: ACLs, users with passwords, a broker's settings."""

from collections.abc import Iterator, Sequence
from typing import Any

from ottla.cli.acl.verdict import AuthorizerFacts
from ottla.cli.kafka.client import KafkaClient, check
from ottla.cli.kafka.options import connect
from ottla.config.authorizers import super_users_of
from ottla.errors import Code, Refusal
from ottla.metadata.decisions.commands import AclFilter
from ottla.metadata.model.acls import AclBinding
from ottla.metadata.model.credentials import MECHANISM_NAMES, salted_password

__all__ = ["AdminClient", "NoAuthorizer"]

DESCRIBE_ACLS, CREATE_ACLS, DELETE_ACLS = (29, 3), (30, 3), (31, 3)
DESCRIBE_CONFIGS, DESCRIBE_SCRAM, ALTER_SCRAM = (32, 4), (50, 0), (51, 0)
BROKER = 4  # as resources of settings are numbered


class NoAuthorizer(Refusal):
    def __init__(self) -> None:
        super().__init__("this fleet has no authorizer: everybody may do everything")


class AdminClient:
    def __init__(self, bootstrap: str | None, config_file: str | None) -> None:
        self._client: KafkaClient = connect(bootstrap, config_file)

    def close(self) -> None:
        self._client.close()

    def scram_users(self) -> Iterator[tuple[str, str, int]]:
        """User, mechanism, iterations."""
        everybody: list[str] = []  # and not null: Kafka 4.1 then never answers one who may not see them
        answer = self._client.ask_anyone(DESCRIBE_SCRAM, {"users": everybody})
        _check(answer, "users", needs="DESCRIBE")
        for described in sorted(answer.results, key=lambda each: each.user):
            for info in sorted(described.credential_infos, key=lambda each: each.mechanism):
                yield described.user, MECHANISM_NAMES.get(info.mechanism, str(info.mechanism)), info.iterations

    def upsert_scram(self, user: str, mechanism: int, password: str, *, iterations: int, salt: bytes) -> None:
        salted = salted_password(mechanism, password, salt=salt, iterations=iterations)
        change = {"name": user, "mechanism": mechanism, "iterations": iterations, "salt": salt,
                  "salted_password": salted}  # fmt: skip
        self._alter_scram({"deletions": [], "upsertions": [change]})

    def delete_scram(self, user: str, mechanism: int) -> None:
        self._alter_scram({"deletions": [{"name": user, "mechanism": mechanism}], "upsertions": []})

    def acls(self, wanted: AclFilter) -> list[AclBinding]:
        answer = self._client.ask_anyone(DESCRIBE_ACLS, _filter_fields(wanted))
        _check(answer, "ACLs", needs="DESCRIBE")
        return [
            AclBinding(
                resource.resource_type,
                resource.pattern_type,
                resource.resource_name,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            for resource in answer.resources
            for acl in resource.acls
        ]

    def create_acls(self, bindings: Sequence[AclBinding]) -> None:
        for result in self._client.ask_anyone(CREATE_ACLS, {"creations": [_acl(each) for each in bindings]}).results:
            _check(result, "ACLs", needs="ALTER")

    def delete_acls(self, wanted: Sequence[AclFilter]) -> list[AclBinding]:
        answer = self._client.ask_anyone(DELETE_ACLS, {"filters": [_filter_fields(one) for one in wanted]})
        removed = []
        for result in answer.filter_results:
            _check(result, "ACLs", needs="ALTER")
            for acl in result.matching_acls:
                _check(acl, "ACLs", needs="ALTER")
                removed.append(_binding(acl))
        return removed

    def authorizer(self) -> AuthorizerFacts:
        """What a broker tells of its own settings; nothing to one who may not see them."""
        self._client.metadata()
        broker = min(self._client.brokers)
        asked = [{"resource_type": BROKER, "resource_name": str(broker), "configuration_keys": None}]
        fields = {"resources": asked, "include_synonyms": False, "include_documentation": False}
        (result,) = self._client.ask(broker, DESCRIBE_CONFIGS, fields).results
        if result.error_code:
            return AuthorizerFacts(None, None)
        values = {each.name: each.value for each in result.configs}
        users, everyone = values.get("super.users", ""), values.get("allow.everyone.if.no.acl.found", "false")
        return AuthorizerFacts(
            None if users is None else super_users_of(users), None if everyone is None else everyone.lower() == "true"
        )

    def _alter_scram(self, fields: dict[str, Any]) -> None:
        (result,) = self._client.ask_anyone(ALTER_SCRAM, fields).results
        _check(result, result.user or "a user's name", needs="ALTER")


def _check(answer: Any, what: str, *, needs: str) -> None:
    if answer.error_code == Code.security_disabled:
        raise NoAuthorizer
    if answer.error_code == Code.cluster_authorization_failed:
        raise Refusal(f"not authorized: this needs {needs} on the cluster")
    check(answer.error_code, what, answer.error_message)


def _acl(binding: AclBinding) -> dict[str, Any]:
    return {
        "resource_type": binding.resource_type,
        "resource_name": binding.resource_name,
        "resource_pattern_type": binding.pattern_type,
        "principal": binding.principal,
        "host": binding.host,
        "operation": binding.operation,
        "permission_type": binding.permission,
    }


def _filter_fields(wanted: AclFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": wanted.resource_type,
        "resource_name_filter": wanted.resource_name,
        "pattern_type_filter": wanted.pattern_type,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": wanted.operation,
        "permission_type": wanted.permission,
    }


def _binding(acl: Any) -> AclBinding:
    return AclBinding(
        acl.resource_type,
        acl.pattern_type,
        acl.resource_name,
        acl.principal,
        acl.host,
        acl.operation,
        acl.permission_type,
    )
