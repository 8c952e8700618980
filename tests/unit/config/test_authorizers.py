"""Which authorizers there are, and who is above them."""

import pytest
from ottla.config import configure
from ottla.config.authorizers import STANDARD, super_users_of
from ottla.errors import Refusal


def warnings(**settings: str) -> tuple[str, ...]:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return configure(named, dict.fromkeys(named, "--set")).warnings


def test_kafkas_own_authorizer_turns_ours_on() -> None:
    assert not warnings(authorizer_class_name=STANDARD, super_users="User:admin;User:CN=broker,O=acme")


def test_the_one_of_zookeeper_does_with_a_warning() -> None:
    (warning,) = warnings(authorizer_class_name="kafka.security.authorizer.AclAuthorizer")
    assert "kept ACLs in ZooKeeper" in warning


def test_others_are_refused_by_name() -> None:
    with pytest.raises(Refusal, match=r"--set: authorizer.class.name=io.acme.Mine: Ottla has no such authorizer"):
        warnings(authorizer_class_name="io.acme.Mine")


@pytest.mark.parametrize("text", ["admin", "User:", ":admin", "User:a;bob"])
def test_super_users_are_principals(text: str) -> None:
    with pytest.raises(Refusal, match=r"--set: super.users=.*expected a string in format principalType:principalName"):
        warnings(authorizer_class_name=STANDARD, super_users=text)


def test_super_users_are_told_apart_by_semicolons() -> None:
    assert super_users_of(" User:a ;User:CN=b,O=c; ") == {"User:a", "User:CN=b,O=c"}
