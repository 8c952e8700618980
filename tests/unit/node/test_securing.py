"""Listeners that cannot be secured as they ask: the broker does not start, and says why."""

import asyncio
from pathlib import Path

import pytest
from ottla.config import configure
from ottla.errors import Refusal
from ottla.metadata.decisions.commands import IncrementalAlterConfigs, SettingChange, SettingOperation
from ottla.metadata.model.state import ResourceType
from ottla.node.securing import Securing
from support.certificates import Authority
from support.nodes import InnerNode

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def securing(folder: Path, **given: str) -> Securing:
    """A listener with TLS, unless the settings say otherwise."""
    Authority.in_folder(folder)
    settings = {
        "node.id": "1", "listeners": "SSL://127.0.0.1:1", "ssl.keystore.type": "PEM",
        "ssl.keystore.location": f"{folder}/broker.pem",
    } | {name.replace("_", "."): value for name, value in given.items()}  # fmt: skip
    return Securing(configure(settings, dict.fromkeys(settings, "--set")))


def test_what_is_shown(tmp_path: Path) -> None:
    assert securing(tmp_path).identities["SSL"].now.leaf.subject == "CN=broker"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"ssl_keystore_type": "PKCS12"}, "SSL://127.0.0.1:1: .*broker.pem is PEM, but ssl.keystore.type is PKCS12"),
        ({"ssl_principal_mapping_rules": "oops"}, "ssl.principal.mapping.rules: 'oops' is neither DEFAULT nor RULE:"),
        ({"ssl_cipher_suites": "TLS_NULL"}, "ssl.cipher.suites: TLS_NULL is unknown; known are"),
        (
            {"listeners": "SASL_SSL://127.0.0.1:1", "sasl_enabled_mechanisms": "PLAIN,DIGEST-MD5"},
            "sasl.enabled.mechanisms names DIGEST-MD5, which is not supported; there are PLAIN",
        ),
    ],
)
def test_what_cannot_be(tmp_path: Path, given: dict[str, str], sentence: str) -> None:
    with pytest.raises(Refusal, match=sentence):
        securing(tmp_path, **given)


JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
IGNORED = rf"no user \(sasl.jaas.config without listener and mechanism is ignored, as in Kafka\): set {JAAS}="


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"sasl.jaas.config": f'{MODULE} required user_a="hush";'}, IGNORED),
        ({"listener.name.sasl_plaintext.sasl.jaas.config": f'{MODULE} required user_a="hush";'}, IGNORED),
        ({}, "takes logins by PLAIN, but knows no user: set listener.name.sasl_plaintext.plain.sasl.jaas.config="),
        ({JAAS: f'{MODULE} required username="x" password="hush";'}, "names no user: add user_NAME="),
        ({JAAS: f"{MODULE} required"}, "JAAS config entry not terminated by semi-colon"),
        ({"ottla.sasl.plain.users.file": "/nowhere"}, "ottla.sasl.plain.users.file: cannot read /nowhere"),
    ],
)
def test_nobody_who_could_log_in(tmp_path: Path, given: dict[str, str], sentence: str) -> None:
    settings = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "PLAIN", **given}

    async def main() -> None:
        with pytest.raises(Refusal, match=sentence) as refused:
            await InnerNode(tmp_path, 1, **settings).start()
        assert "hush" not in str(refused.value)

    asyncio.run(main())


async def change(node: InnerNode, broker: str, name: str, value: str) -> str | None:
    assert node.node is not None and node.node._quorum is not None
    resource, wanted = (ResourceType.BROKER, broker), [SettingChange(name, SettingOperation.SET, value)]
    (outcome,) = await node.node._quorum.controller.submit(IncrementalAlterConfigs([(resource, wanted)]))
    return outcome.message


def test_settings_in_the_metadata_log_cannot_stop_a_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "PLAIN",
        JAAS: f'{MODULE} required user_ann="hush";',
    }  # fmt: skip

    async def main() -> None:
        node = InnerNode(tmp_path, 1, **settings)
        await node.start()
        assert "default cluster level" in (await change(node, "", JAAS, "x") or "")
        assert await change(node, "1", "sasl.enabled.mechanisms", "PLAIN,FOO") is None
        assert await change(node, "1", JAAS, "oops") is None
        await node.stop()
        await node.start()
        await node.stop()

    asyncio.run(main())
    assert "users of SASL/PLAIN: those of the file stay in force" in caplog.text
