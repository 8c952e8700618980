from ottla.config import BROKER, TOPIC
from ottla.config.document import PATH, document, main
from ottla.config.people import default_for_people


def test_config_md_is_what_the_table_says():
    assert PATH.read_text() == document()
    assert main(["--check"]) == 0


def test_every_setting_is_in_it():
    text = document()
    assert [name for name in (*BROKER, *TOPIC) if f"| `{name}` |" not in text] == []


def test_drift_is_noticed(tmp_path, monkeypatch, capsys):
    stale = tmp_path / "CONFIG.md"
    stale.write_text("old")
    monkeypatch.setattr("ottla.config.document.PATH", stale)
    assert main(["--check"]) == 1
    assert "run: python -m ottla.config.document" in capsys.readouterr().err
    assert main([]) == 0
    assert main(["--check"]) == 0


def test_defaults_for_people():
    assert default_for_people(TOPIC["retention.ms"]) == "604800000 (7 days)"
    assert default_for_people(TOPIC["segment.bytes"]) == "1073741824 (1 GiB)"
    assert default_for_people(TOPIC["flush.ms"]) == "9223372036854775807 (no limit)"
    assert default_for_people(BROKER["broker.rack"]) == "unset"
    assert default_for_people(BROKER["quota.window.num"]) == "11"
