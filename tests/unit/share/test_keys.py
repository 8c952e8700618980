import pytest
from ottla.share.core.messages import is_key_text

ID = "4vTJHjQzRxGFvlyDC6QmrA"


@pytest.mark.parametrize("text", [f"group:{ID}:0", f"g g:{ID}:2147483647"])
def test_keys(text: str) -> None:
    assert is_key_text(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "group", f"group:{ID}", f"group:{ID}:", f"group:{ID}:x", f"group:{ID}:-1", f"group:{ID}:2147483648"),
        *(f":{ID}:0", f" :{ID}:0", "group:4vTJHjQz:0", f"group:{ID}A:0", "group:é:0", f"a:b:{ID}:0"),
    ],
)
def test_no_keys(text: str) -> None:
    assert not is_key_text(text)
