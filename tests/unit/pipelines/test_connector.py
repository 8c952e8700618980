"""The connector's jars: fetched once and checked; one sentence says why they are missing."""

import hashlib
import http.server
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from ottla_pipelines import connector


class Shelf(http.server.SimpleHTTPRequestHandler):
    asked: list[str]
    content = b"a jar"

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self._answer(self.content)

    def do_HEAD(self) -> None:
        self._answer(b"")

    def _answer(self, content: bytes) -> None:
        there = self.path.endswith(".jar")  # no checksums beside them
        self.send_response(200 if there else 404)
        self.send_header("Content-Length", str(len(self.content) if there else 0))
        self.end_headers()
        self.wfile.write(content if there else b"")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def shelf(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    """A Maven repository on this machine; yields what was asked of it."""
    Shelf.asked = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Shelf) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv(connector.MIRROR_VARIABLE, f"http://127.0.0.1:{server.server_port}/maven/")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        yield Shelf.asked
        server.shutdown()


def test_jars_are_fetched_once(shelf: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hashlib.sha256(Shelf.content).hexdigest()
    monkeypatch.setattr(connector, "JARS", tuple(replace(jar, sha256=digest) for jar in connector.JARS))
    said: list[str] = []
    jars = connector.connector_jars(said.append)
    assert [jar.name for jar in jars] == sorted(jar.file_name for jar in connector.JARS)
    asked = len(shelf)
    assert connector.connector_jars(said.append) == jars
    assert len(shelf) == asked and len(said) == 1
    assert all(path.startswith("/maven/org/apache/") for path in shelf)


def test_another_file_under_that_name_is_refused(shelf: list[str], tmp_path: Path) -> None:
    with pytest.raises(connector.ConnectorUnavailable, match="is not the file it should be"):
        connector.connector_jars()
    assert not list((tmp_path / "ottla").iterdir()), "nothing half-fetched stays"


def test_an_unreachable_repository_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(connector.MIRROR_VARIABLE, "http://127.0.0.1:1")
    with pytest.raises(connector.ConnectorUnavailable, match=r"from http://127.0.0.1:1: .*; set OTTLA_MAVEN") as why:
        connector.connector_jars()
    assert "did not say why" not in str(why.value)


def test_java_is_asked_for_where_it_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(connector.ConnectorUnavailable, match="Java 17"):
        connector.connector_jars()
