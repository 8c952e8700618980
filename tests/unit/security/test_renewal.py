"""When files of certificates and users are loaded: as they change, and again when they were refused."""

from pathlib import Path

from ottla.security.renewal import LOOKS_BETWEEN_TRIES, Looks, state_of


def test_what_was_refused_is_tried_again_and_told_once(tmp_path: Path) -> None:
    path = tmp_path / "node.pem"
    path.write_text("one")
    looks, state = Looks(), state_of([str(path)])
    assert looks.is_due(state)
    looks.taken()
    assert not any(looks.is_due(state) for _ in range(LOOKS_BETWEEN_TRIES)), "it is in force"
    looks.forget()
    assert looks.is_due(state)
    for is_news in (True, False):
        assert looks.refused("not valid yet") is is_news
        assert [looks.is_due(state) for _ in range(LOOKS_BETWEEN_TRIES)] == [False] * (LOOKS_BETWEEN_TRIES - 1) + [True]
    assert looks.refused("another reason")
    path.write_text("another")
    assert looks.is_due(state_of([str(path)]))
    assert looks.refused("another reason"), "of another file"


def test_whatever_may_make_a_file_good_is_noticed(tmp_path: Path) -> None:
    """Its content, its rights, another file behind a link, one that was missing."""
    path, link = tmp_path / "node.pem", tmp_path / "link"
    link.symlink_to(path)
    seen = [state_of([str(link)])]
    path.write_text("one")
    seen.append(state_of([str(link)]))
    path.chmod(0o600)
    seen.append(state_of([str(link)]))
    link.unlink()
    (tmp_path / "other").write_text("one")
    link.symlink_to(tmp_path / "other")
    seen.append(state_of([str(link)]))
    assert len(set(seen)) == len(seen)
