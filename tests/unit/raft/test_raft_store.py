"""The durable log: what was persisted comes back, a torn tail is cut at every byte, damage is refused."""

import uuid
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ottla.errors import Refusal
from ottla.raft.bootstrap import write_bootstrap
from ottla.raft.core.messages import Entry, EntryKind, HardState, Member, Snapshot, Voter, encode_voters
from ottla.raft.store import RaftStore, Stored
from ottla.system import RealDisk

SEED = (Voter(1, uuid.UUID(int=1), "localhost:9190"),)


def entry(index: int, term: int = 1, data: bytes = b"") -> Entry:
    return Entry(index, term, EntryKind.DATA, data or f"entry {index}.{term}".encode())


def open_store(folder: Path, **options: int) -> tuple[RaftStore, Stored]:
    store = RaftStore(RealDisk(), str(folder), **options)
    return store, store.load(SEED)


def reload(folder: Path) -> Stored:
    store, stored = open_store(folder)
    store.close()
    return stored


def log_files(folder: Path) -> list[Path]:
    return sorted((folder / "__ottla_metadata").glob("*.raftlog"))


def test_an_empty_folder_begins_with_the_seed(tmp_path: Path) -> None:
    stored = reload(tmp_path)
    assert stored.hard_state == HardState(0, None, SEED)
    assert stored.snapshot == Snapshot(0, 0, SEED, b"")
    assert list(stored.entries) == []


def test_no_other_user_can_read_it(tmp_path: Path) -> None:
    """It holds keys of users and lines with passwords. Its folder may come from a version that left it open."""
    folder = tmp_path / "__ottla_metadata"
    folder.mkdir(mode=0o755)
    store, _ = open_store(tmp_path)
    store.persist(HardState(1, None, SEED), Snapshot(1, 1, SEED, b"x"), [entry(2)])
    store.close()
    write_bootstrap(RealDisk(), str(tmp_path), b"first users")
    files = list(folder.iterdir())
    assert len(files) >= 4
    assert [path.name for path in (folder, *files) if path.stat().st_mode & 0o077] == []


def test_the_seed_of_an_old_log_is_kept(tmp_path: Path) -> None:
    reload(tmp_path)
    stored = RaftStore(RealDisk(), str(tmp_path)).load((Voter(9),))
    assert stored.hard_state.seed == SEED


def test_entries_and_state_come_back(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path)
    state = HardState(3, Member(2, uuid.UUID(int=5)), SEED)
    voters = Entry(3, 3, EntryKind.VOTERS, encode_voters(SEED))
    store.persist(state, None, [entry(1), entry(2, 3)])
    store.persist(None, None, [voters])
    store.close()
    stored = reload(tmp_path)
    assert stored.hard_state == state
    assert list(stored.entries) == [entry(1), entry(2, 3), voters]
    assert stored.raft_log().voters == SEED


def test_files_roll_and_all_come_back(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path, file_bytes_max=200)
    for index in range(1, 51):
        store.persist(None, None, [entry(index)])
    store.close()
    assert len(log_files(tmp_path)) > 5
    assert [each.index for each in reload(tmp_path).entries] == list(range(1, 51))


@pytest.mark.parametrize("replaced_from", [1, 2, 10, 11, 25, 49, 50])
def test_a_new_leaders_entries_replace_old_ones(tmp_path: Path, replaced_from: int) -> None:
    store, _ = open_store(tmp_path, file_bytes_max=200)
    for index in range(1, 51):
        store.persist(None, None, [entry(index)])
    replacement = [entry(index, 2) for index in range(replaced_from, replaced_from + 3)]
    store.persist(HardState(2, None, SEED), None, replacement)
    store.persist(None, None, [entry(replaced_from + 3, 2)])
    store.close()
    expected = [entry(index) for index in range(1, replaced_from)] + [*replacement, entry(replaced_from + 3, 2)]
    assert list(reload(tmp_path).entries) == expected


def test_a_torn_tail_is_cut_at_every_byte(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path)
    store.persist(None, None, [entry(1), entry(2)])
    synced = log_files(tmp_path)[0].stat().st_size
    store.persist(None, None, [entry(3, data=b"x" * 40), entry(4), entry(5)])
    store.close()
    path = log_files(tmp_path)[0]
    whole = path.read_bytes()
    for size in range(synced, len(whole)):
        path.write_bytes(whole[:size])
        recovered = [each.index for each in reload(tmp_path).entries]
        assert recovered[:2] == [1, 2] and recovered == list(range(1, len(recovered) + 1)) and len(recovered) < 5
        # What was cut stays cut, and the log goes on from there.
        store, _ = open_store(tmp_path)
        following = len(recovered) + 1
        store.persist(None, None, [entry(following, 7)])
        store.close()
        assert list(reload(tmp_path).entries)[-1] == entry(following, 7)


def test_garbage_where_the_unsynced_tail_was_is_cut(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path)
    store.persist(None, None, [entry(1)])
    position = log_files(tmp_path)[0].stat().st_size
    store.persist(None, None, [entry(2), entry(3)])
    store.close()
    path = log_files(tmp_path)[0]
    damaged = bytearray(path.read_bytes())
    # Power went while 2 and 3 were written: 3 reached the disk, 2 did not. Both knew only 1 to be safe.
    damaged[position : position + 20] = bytes(20)
    path.write_bytes(damaged)
    assert list(reload(tmp_path).entries) == [entry(1)]


def test_damage_to_synced_entries_is_refused_at_every_byte(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path)
    store.persist(None, None, [entry(1)])
    store.persist(None, None, [entry(2)])
    position = log_files(tmp_path)[0].stat().st_size
    store.persist(None, None, [entry(3)])
    store.close()
    path = log_files(tmp_path)[0]
    whole = path.read_bytes()
    for at in range(position):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        with pytest.raises(Refusal):
            reload(tmp_path)
        assert path.stat().st_size == len(whole), "nothing is cut off"


def test_damage_in_an_earlier_file_is_refused(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path, file_bytes_max=100)
    for index in range(1, 10):
        store.persist(None, None, [entry(index)])
    store.close()
    first = log_files(tmp_path)[0]
    first.write_bytes(first.read_bytes()[:-1])
    with pytest.raises(Refusal, match="damaged"):
        reload(tmp_path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path, file_bytes_max=100)
    for index in range(1, 10):
        store.persist(None, None, [entry(index)])
    store.close()
    log_files(tmp_path)[1].unlink()
    with pytest.raises(Refusal, match="does not follow"):
        reload(tmp_path)


def test_own_snapshot_lets_old_files_go(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path, file_bytes_max=100)
    for index in range(1, 21):
        store.persist(None, None, [entry(index)])
    snapshot = Snapshot(15, 1, SEED, b"image")
    store.save_snapshot(snapshot)
    store.drop_before(11)
    store.close()
    stored = reload(tmp_path)
    assert stored.snapshot == snapshot
    assert stored.offset < 11 and [each.index for each in stored.entries] == list(range(stored.offset + 1, 21))
    log = stored.raft_log()
    assert (log.commit, log.last_index, log.term_at(stored.offset)) == (15, 20, 1)


def test_a_leaders_snapshot_replaces_the_log(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path)
    store.persist(None, None, [entry(1), entry(2)])
    snapshot = Snapshot(10, 4, SEED, b"image")
    store.persist(HardState(4, None, SEED), snapshot, [entry(11, 4)])
    store.close()
    stored = reload(tmp_path)
    assert (stored.snapshot, stored.offset, list(stored.entries)) == (snapshot, 10, [entry(11, 4)])


def test_a_crash_between_a_leaders_snapshot_and_dropping_the_log(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path)
    store.persist(None, None, [entry(index) for index in range(1, 13)])
    store.save_snapshot(Snapshot(10, 4, SEED, b"image"))  # of term 4; our entry 10 is of term 1
    store.close()
    stored = reload(tmp_path)
    assert (stored.offset, stored.offset_term, list(stored.entries)) == (10, 4, [])
    store, _ = open_store(tmp_path)
    store.persist(None, None, [entry(11, 4)])
    store.close()
    assert list(reload(tmp_path).entries) == [entry(11, 4)]


def test_damaged_state_and_snapshot_are_refused(tmp_path: Path) -> None:
    store, _ = open_store(tmp_path)
    store.save_snapshot(Snapshot(0, 0, SEED, b"image"))
    store.close()
    snapshot = next((tmp_path / "__ottla_metadata").glob("*.snapshot"))
    whole = snapshot.read_bytes()
    snapshot.write_bytes(whole[:-1] + b"?")
    with pytest.raises(Refusal, match="snapshot is damaged"):
        reload(tmp_path)
    snapshot.write_bytes(whole)
    (tmp_path / "__ottla_metadata" / "quorum-state").write_text("{")
    with pytest.raises(Refusal, match="quorum-state is damaged"):
        reload(tmp_path)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300))
def test_any_bytes_are_survived_or_refused(tmp_path: Path, data: bytes) -> None:
    folder = tmp_path / uuid.uuid4().hex
    store, _ = open_store(folder)
    store.persist(None, None, [entry(1)])
    store.close()
    path = log_files(folder)[0]
    path.write_bytes(path.read_bytes() + data)
    assert list(reload(folder).entries)[:1] == [entry(1)]
