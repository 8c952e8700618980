"""The command as a person runs it: exit status, one line on stderr, files on disk."""

import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest
from ottla.cli.main import app

NO_FILE = "No such file or directory"


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def ottla(*words: str) -> Done:
    """The command in this process: a new one takes half a second to start."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as error:
        try:
            status = app(list(words))
        except SystemExit as end:
            status = int(end.code or 0)
    return Done(status, out.getvalue(), error.getvalue())


def said(*words: str) -> str:
    """What a refused command says: exit status 1, one line, no traceback."""
    done = ottla(*words)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    return done.stderr.strip()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--config", "/missing"], f"ottla serve: cannot read /missing: {NO_FILE}"),
        (["--set", "oops"], "ottla serve: --set oops: expected key=value, such as --set log.retention.hours=24"),
        (["--set", "num.partitions=0"], "ottla serve: --set: num.partitions=0: Value must be at least 1"),
        (["--port", "-1"], "ottla serve: --port -1: a port is 0 to 65535"),
        (["--port", "65536"], "ottla serve: --port 65536: a port is 0 to 65535"),
        (
            ["--port", "19092", "--set", "listeners=SASL_SSL://127.0.0.1:9093"],
            "ottla serve: --set: listeners: SASL_SSL://127.0.0.1:9093 asks for SASL_SSL, and --port would serve "
            "plaintext in its place; leave --port out, and set the port in listeners",
        ),
    ],
)
def test_serve_refuses_in_one_line(words, sentence):
    assert said("serve", *words) == sentence


def test_serve_refuses_a_malformed_cluster_id_before_it_writes(tmp_path):
    folder = tmp_path / "data"
    assert said("serve", "--data-dir", str(folder), "--set", "cluster.id=short") == (
        "ottla serve: --set: cluster.id=short: 'short' is not a cluster id of 22 characters; `ottla random-uuid` makes "
        "one"
    )
    assert not folder.exists()


def test_serve_names_file_and_line(tmp_path):
    file = tmp_path / "server.properties"
    file.write_text("# mine\nlog.segment.bytes=big\n")
    assert said("serve", "--config", str(file)) == (
        f"ottla serve: {file}, line 2: log.segment.bytes=big: expected a number (int), such as the default 1073741824"
    )


def test_serve_teaches():
    done = ottla("serve", "--help")
    assert done.returncode == 0
    assert "ottla serve --config server.properties --set log.retention.hours=24" in done.stdout


def test_serve_starts_without_what_it_does_not_need():
    loading = (
        "import sys; from ottla.cli.main import app; app(['serve', '--set', 'oops']); "
        "print([name for name in ('typer', 'rich', 'hypothesis', 'grpc') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", loading], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_a_refusal_is_one_line_of_the_process_too():
    words = [sys.executable, "-m", "ottla", "serve", "--set", "num.partitions=0"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "ottla serve: --set: num.partitions=0: Value must be at least 1\n"


def test_help_and_version():
    assert "ottla config list retention" in ottla("--help").stdout
    assert ottla("--version").stdout == "ottla 0.1.0\n"
    assert ottla("no-such-command").returncode == 2


def test_random_uuid():
    first, second = ottla("random-uuid").stdout.strip(), ottla("random-uuid").stdout.strip()
    assert len(first) == len(second) == 22
    assert first != second


def meta_of(folder: Path) -> dict[str, str]:
    lines = (folder / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


def test_format_makes_directories_of_one_fleet(tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    done = ottla("format", "--set", f"log.dirs={folders[0]},{folders[1]}", "--set", "node.id=7")
    assert done.returncode == 0, done.stderr
    first, second = map(meta_of, folders)
    assert first["cluster.id"] == second["cluster.id"] == done.stdout.strip()
    assert first["node.id"] == "7" and first["version"] == "1"
    assert first["directory.id"] != second["directory.id"]


def test_format_takes_a_cluster_id_and_refuses_a_second_time(tmp_path):
    words = ["format", "--data-dir", str(tmp_path / "data"), "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qk"]
    assert ottla(*words).stdout == "MkU3OEVBNTcwNTJENDM2Qk\n"
    before = meta_of(tmp_path / "data")
    assert said(*words) == (
        f"ottla format: data directory {tmp_path}/data is already formatted for cluster MkU3OEVBNTcwNTJENDM2Qk "
        "(meta.properties)"
    )
    assert ottla(*words, "--ignore-formatted").returncode == 0
    assert meta_of(tmp_path / "data") == before
    other = [*words[:-1], "5L6g3nShT-eMCtK--X86sw", "--ignore-formatted"]
    assert "belongs to cluster MkU3OEVBNTcwNTJENDM2Qk" in said(*other)


def test_a_broker_that_asks_for_format_leaves_nothing_in_its_way(tmp_path):
    voters, port = "controller.quorum.voters=1@a:1,2@b:1", "listeners=PLAINTEXT://127.0.0.1:0"
    words = ["--data-dir", str(tmp_path), "--set", "node.id=1", "--set", voters, "--set", port]
    serve = subprocess.run([sys.executable, "-m", "ottla", "serve", *words], capture_output=True, text=True)
    assert serve.returncode == 1 and "run `ottla format --cluster-id ID`" in serve.stderr
    assert ottla("format", *words).returncode == 0


def test_format_leaves_a_foreign_directory_alone(tmp_path):
    (tmp_path / "holiday.jpg").write_text("")
    fresh = tmp_path.parent / f"{tmp_path.name}-fresh"
    assert "is not empty (holiday.jpg, …)" in said("format", "--set", f"log.dirs={fresh},{tmp_path}")
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.jpg"]
    assert not fresh.exists()


def test_format_leaves_kafkas_metadata_alone(tmp_path):
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_text("")
    assert "Apache Kafka" in said("format", "--data-dir", str(tmp_path))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--cluster-id", "short"], "'short' is not a cluster id of 22 characters"),
        (["--cluster-id", "MkU3OEVBNTcwNTJENDM2Qk", "--set", "cluster.id=5L6g3nShT-eMCtK--X86sw"], "differs from"),
        (["--data-dir", "/proc/nowhere"], "cannot format /proc/nowhere"),
    ],
)
def test_format_refusals(words, sentence, tmp_path):
    where = [] if "--data-dir" in words else ["--data-dir", str(tmp_path / "data")]
    assert sentence in said("format", *where, *words)
    assert not (tmp_path / "data").exists()


def test_config_list_finds_by_words():
    done = ottla("config", "list", "retention", "bytes")
    assert "log.retention.bytes = -1" in done.stdout
    assert "log.local.retention.bytes" not in done.stdout
    assert "log.local.retention.bytes" in ottla("config", "list", "retention", "bytes", "--all").stdout


def test_config_show():
    shown = ottla("config", "show", "retention.ms", "--topic").stdout
    assert "604800000 (7 days)" in shown and "[-1,...]" in shown and "log.retention.minutes" in shown
    assert said("config", "show", "log.retention.hour") == (
        "ottla config: unknown broker setting log.retention.hour; did you mean log.retention.hours?"
    )
    assert said("config", "show", "retention.ms").endswith("try: ottla config show retention.ms --topic")


def test_config_list_says_when_it_finds_nothing():
    assert said("config", "list", "zzzz") == "ottla config: no setting has zzzz in its name or text"
    assert said("config", "list", "unclean", "zzzz", "--topic").endswith("has unclean and zzzz in its name or text")
    assert said("config", "list", "--topic", "ottla.grpc.port").endswith("settings of a broker do: leave out --topic")


def test_ctrl_c_while_modules_load_is_silent(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("ottla.cli.serve.main", interrupted)
    assert ottla("serve") == (130, "", "")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("PLAIN=[name=a,password=secret]", "SCRAM-SHA-256=[…] or SCRAM-SHA-512=[…] is expected, not 'PLAIN'"),
        ("SCRAM-SHA-256=name=a,password=secret", "what SCRAM-SHA-256 is given stands in square brackets"),
        ("SCRAM-SHA-256=[password=secret]", "name is missing"),
        ("SCRAM-SHA-256=[name=a]", "password is missing (or salt and saltedpassword)"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=c2VjcmV0]", "password is missing (or salt and saltedpassword)"),
        ("SCRAM-SHA-256=[name=a,salt=c2FsdA==,saltedpassword=c2VjcmV0]", "A salted password of SCRAM-SHA-256 has 32"),
        ("SCRAM-SHA-256=[name=a,password=secret,salt=+-]", "salt is not Base64"),
        ("SCRAM-SHA-256=[name=a,password=secret,iterations=1]", "iterations=1 is not within 4096 and 16384"),
        ("SCRAM-SHA-256=[name=a,password=secret,iterations=1e9]", "iterations=1e9 is no number"),
        ("SCRAM-SHA-256=[name=a,password=secret,colour=red]", "are known, each with = and a value"),
        ("SCRAM-SHA-256=[name=,password=secret]", "Username must not be empty"),
    ],
)
def test_format_refuses_users_without_repeating_a_password(tmp_path, given, sentence):
    line = said("format", "--data-dir", str(tmp_path / "data"), "--add-scram", given)
    assert line.startswith("ottla format: --add-scram: ")
    assert sentence in line
    assert "secret" not in line
    assert not (tmp_path / "data").exists()


def test_a_user_has_a_name():
    assert said("users", "add", "") == "ottla users: a user's name is not empty"
