"""The administration of any Kafka for people at a terminal, also of one that is secured: by librdkafka."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ottla.cli.acl.verdict import AuthorizerFacts
from ottla.config.authorizers import super_users_of
from ottla.errors import Refusal
from ottla.metadata.decisions.commands import AclFilter
from ottla.metadata.model.acls import AclBinding

__all__ = ["AdminClient"]

ANSWER_S_MAX = 15.0


class AdminClient:
    """`config_file` has lines of librdkafka's settings, such as `security.protocol=SASL_SSL`."""

    def __init__(self, bootstrap: str, config_file: str | None) -> None:
        try:
            from confluent_kafka import admin
        except ImportError:
            raise Refusal("this command needs librdkafka: pip install confluent-kafka") from None
        quiet = logging.getLogger("ottla.librdkafka")
        quiet.addHandler(logging.NullHandler())
        quiet.propagate = False
        settings: dict[str, Any] = {"bootstrap.servers": bootstrap, **_read(config_file), "logger": quiet}
        try:
            self._client = admin.AdminClient(settings)
        except Exception as error:  # KafkaException of a setting that librdkafka does not know
            raise Refusal(f"{config_file or '--bootstrap'}: {_sentence(error)}") from None
        self._admin: Any = admin

    def scram_users(self) -> Iterator[tuple[str, str, int]]:
        """User, mechanism, iterations."""
        asked = self._client.describe_user_scram_credentials(None, request_timeout=ANSWER_S_MAX)
        for user, described in sorted(self._result("users", asked).items()):
            for info in sorted(described.scram_credential_infos, key=lambda each: each.mechanism.value):
                yield user, info.mechanism.name.replace("_", "-"), info.iterations

    def upsert_scram(self, user: str, mechanism: int, password: str, *, iterations: int, salt: bytes) -> None:
        info = self._admin.ScramCredentialInfo(self._admin.ScramMechanism(mechanism), iterations)
        self._alter(user, self._admin.UserScramCredentialUpsertion(user, info, password.encode(), salt))

    def delete_scram(self, user: str, mechanism: int) -> None:
        self._alter(user, self._admin.UserScramCredentialDeletion(user, self._admin.ScramMechanism(mechanism)))

    def acls(self, wanted: AclFilter) -> list[AclBinding]:
        asked = self._client.describe_acls(self._acl_filter(wanted), request_timeout=ANSWER_S_MAX)
        return [_binding(each) for each in self._result("ACLs", asked)]

    def create_acls(self, bindings: Sequence[AclBinding]) -> None:
        made = [self._acl(binding) for binding in bindings]
        asked = self._client.create_acls(made, request_timeout=ANSWER_S_MAX)
        for one in made:
            self._result("ACLs", asked[one])

    def delete_acls(self, wanted: Sequence[AclFilter]) -> list[AclBinding]:
        filters = [self._acl_filter(one) for one in wanted]
        asked = self._client.delete_acls(filters, request_timeout=ANSWER_S_MAX)
        return [_binding(each) for one in filters for each in self._result("ACLs", asked[one])]

    def authorizer(self) -> AuthorizerFacts:
        """What a broker tells of its own settings."""
        try:
            brokers = self._client.list_topics(timeout=ANSWER_S_MAX).brokers
            resource = self._admin.ConfigResource(self._admin.ConfigResource.Type.BROKER, str(min(brokers)))
            asked = self._client.describe_configs([resource], request_timeout=ANSWER_S_MAX)
            settings = self._result("settings", asked[resource])
        except Exception:  # one who may not see them
            return AuthorizerFacts(None, None)
        users, everyone = settings.get("super.users"), settings.get("allow.everyone.if.no.acl.found")
        return AuthorizerFacts(
            frozenset() if users is None else None if users.value is None else super_users_of(users.value),
            False if everyone is None else None if everyone.value is None else everyone.value.lower() == "true",
        )

    def _acl(self, binding: AclBinding) -> Any:
        admin = self._admin
        return admin.AclBinding(
            admin.ResourceType(binding.resource_type),
            binding.resource_name,
            admin.ResourcePatternType(binding.pattern_type),
            binding.principal,
            binding.host,
            admin.AclOperation(binding.operation),
            admin.AclPermissionType(binding.permission),
        )

    def _acl_filter(self, wanted: AclFilter) -> Any:
        admin = self._admin
        return admin.AclBindingFilter(
            admin.ResourceType(wanted.resource_type),
            wanted.resource_name,
            admin.ResourcePatternType(wanted.pattern_type),
            wanted.principal,
            wanted.host,
            admin.AclOperation(wanted.operation),
            admin.AclPermissionType(wanted.permission),
        )

    def _alter(self, user: str, change: Any) -> None:
        asked = self._client.alter_user_scram_credentials([change], request_timeout=ANSWER_S_MAX)
        self._result(user, asked[user])

    def _result(self, what: str, asked: Any) -> Any:
        try:
            return asked.result(timeout=ANSWER_S_MAX + 1)
        except Exception as error:  # KafkaException, and those of the future
            raise Refusal(f"{what}: {_sentence(error)}") from None


def _binding(one: Any) -> AclBinding:
    return AclBinding(
        one.restype.value,
        one.resource_pattern_type.value,
        one.name,
        one.principal,
        one.host,
        one.operation.value,
        one.permission_type.value,
    )


def _read(file: str | None) -> Mapping[str, str]:
    if file is None:
        return {}
    try:
        with open(file, encoding="utf-8") as opened:
            lines = [line.strip() for line in opened]
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"--command-config {file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def _sentence(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return str(reason.str()) if hasattr(reason, "str") else str(reason) or type(error).__name__
