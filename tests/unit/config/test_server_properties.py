"""Java's properties syntax."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ottla.config.properties import parse_properties


def decode(text: str) -> dict[str, str]:
    return {name: value for name, value, _ in parse_properties(text)}


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=b", {"a": "b"}),
        ("a = b ", {"a": "b "}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a\t=\tb", {"a": "b"}),
        ("a", {"a": ""}),
        ("a=b=c", {"a": "b=c"}),
        ("# a=b\n! c=d\n\n  # e=f\n", {}),
        ("a=1\ra=2\r\n", {"a": "2"}),
        ("a=one,\\\n    two,\\\r\n    three", {"a": "one,two,three"}),
        ("a=1\\\n# not a comment", {"a": "1# not a comment"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a\\=b\\:c\\ d=e", {"a=b:c d": "e"}),
        ("a=\\u00e9\\t\\q\\\\", {"a": "é\tq\\"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("a=b\\", {"a": "b"}),
        ("\\", {}),
        ("=b", {"": "b"}),
    ],
)
def test_syntax(text, pairs):
    assert decode(text) == pairs


def test_a_property_knows_its_first_line():
    assert [property.line for property in parse_properties("# x\n\na=1,\\\n  2\nb=3")] == [3, 5]


def test_a_broken_escape_names_its_line():
    with pytest.raises(ValueError, match="line 2: "):
        decode("a=1\nb=\\u00g0")


@given(st.text())
def test_any_text_is_read_or_refused(text):
    try:
        pairs = decode(text)
    except ValueError as refusal:
        assert "hexadecimal" in str(refusal)
    else:
        assert all(isinstance(value, str) for value in pairs.values())
