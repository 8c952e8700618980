"""Login settings in JAAS form, read as Java reads them."""

import pytest
from ottla.security.core.jaas import BadLoginSettings, LoginModule, parse_login_modules
from ottla.security.core.plain import users_of

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f'{PLAIN} required user_a="1";', {"user_a": "1"}),
        (f'{PLAIN} REQUIRED\n  user_a="x y"\n\tuser_b = \'q"t\' ;', {"user_a": "x y", "user_b": 'q"t'}),
        (f'{PLAIN} required user_a="say \\"hi\\" \\\\ \\101";', {"user_a": 'say "hi" \\ A'}),
        (f"{PLAIN} required user_a=bare // not this;\n;", {"user_a": "bare"}),
        (f'{PLAIN} required /* nor\n this */ user_a="/;=";', {"user_a": "/;="}),
        (f"{PLAIN} required;", {}),
    ],
)
def test_what_can_be_read(text: str, options: dict[str, str]) -> None:
    (module,) = parse_login_modules(text)
    assert module == LoginModule(PLAIN, "required", options)


def test_several_modules() -> None:
    assert [each.name for each in parse_login_modules("a required x=1; b.C optional;")] == ["a", "b.C"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Login module not specified in JAAS config"),
        ("// nothing", "Login module not specified in JAAS config"),
        ("; ;", "Login module not specified in JAAS config"),
        ("a;", "Login module control flag not specified in JAAS config"),
        ("a perhaps;", "Invalid login module control flag 'perhaps' in JAAS config"),
        ("a required x;", "Value not specified for key 'x' in JAAS config"),
        ("a required x=;", "Value not specified for key 'x' in JAAS config"),
        ("a required x==;", "Value not specified for key 'x' in JAAS config"),
        ("a required x=1", "JAAS config entry not terminated by semi-colon"),
        ('a required x="secret;', "JAAS config has a quote that does not end"),
    ],
)
def test_what_cannot_be_read(text: str, sentence: str) -> None:
    with pytest.raises(BadLoginSettings) as refused:
        parse_login_modules(text)
    assert str(refused.value) == sentence


def test_passwords_are_not_shown() -> None:
    assert "hush" not in repr(parse_login_modules("a required user_a=hush;"))


def test_users() -> None:
    assert users_of({"username": "broker", "password": "p", "user_a": "1", "user_b_c": "2"}) == {"a": "1", "b_c": "2"}
