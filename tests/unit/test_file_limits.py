"""Too few open files are told at the start, not when they run out."""

import pytest
from ottla.errors import Refusal
from ottla.system import files_problem


def test_a_limit_that_no_node_starts_with_is_refused() -> None:
    with pytest.raises(Refusal, match=r"only 20 files may be open \(`ulimit -Hn`\): a broker needs at least 96"):
        files_problem(20, logs_wanted=10_000)


def test_a_limit_far_below_the_settings_is_warned_about() -> None:
    problem = files_problem(1024, logs_wanted=10_000)
    assert problem is not None
    assert "1024 files may be open (`ulimit -Hn`): 480 are for logs, where ottla.open.files.max is 10000" in problem
    assert "raise the limit to 20064" in problem
    assert files_problem(1024, logs_wanted=1_000) is None
    assert files_problem(20_064, logs_wanted=10_000) is None
