"""An image is built again exactly when what goes into it has changed."""

from pathlib import Path

import pytest

from scripts import images


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> images.Image:
    monkeypatch.setattr(images, "TOP", tmp_path)
    (tmp_path / "app" / "__pycache__").mkdir(parents=True)
    (tmp_path / "app" / "code.py").write_text("one = 1\n")
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / ".dockerignore").write_text("")
    return images.Image("app", "Dockerfile", ("app",))


def test_the_same_sources_give_the_same_archive(image: images.Image, tmp_path: Path) -> None:
    before = images.archive_of(image)
    (tmp_path / "app" / "__pycache__" / "code.pyc").write_bytes(b"compiled")
    (tmp_path / "elsewhere.py").write_text("two = 2\n")
    assert images.archive_of(image) == before


@pytest.mark.parametrize("changed", ["app/code.py", "Dockerfile", ".dockerignore", "app/new.py"])
def test_a_changed_source_gives_another_archive(image: images.Image, tmp_path: Path, changed: str) -> None:
    before = images.archive_of(image)
    (tmp_path / changed).write_text("changed\n")
    assert images.archive_of(image) != before


def test_an_unknown_image_is_refused_by_name() -> None:
    with pytest.raises(images.BuildFailed, match="no image is named carrier; there are broker, operator, spark"):
        images.build_all(["carrier"])
