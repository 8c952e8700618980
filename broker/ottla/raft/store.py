"""The quorum's data on disk: `<metadata dir>/__ottla_metadata`.

    <first index, 20 digits>.raftlog   entries, framed; a new file every FILE_BYTES_MAX
    quorum-state                       term, vote and seed voters (JSON), replaced atomically
    <index>-<term>.snapshot            the newest one

Every method blocks. `persist` returns after fsync or raises; then the node must stop: a failed fsync is never
retried, because the kernel may have dropped the pages.
"""

from collections.abc import Sequence

import msgspec

from ottla.errors import Refusal
from ottla.ports import Disk, File
from ottla.raft.core import frames
from ottla.raft.core.admission import TERM_MAX
from ottla.raft.core.log import RaftLog
from ottla.raft.core.messages import Entry, HardState, Snapshot, Voters

__all__ = ["FOLDER_NAME", "RaftStore", "Stored"]

FOLDER_NAME = "__ottla_metadata"
STATE_NAME = "quorum-state"
LOG_SUFFIX, SNAPSHOT_SUFFIX = ".raftlog", ".snapshot"
FILE_BYTES_MAX = 16 << 20


class Stored(msgspec.Struct, frozen=True):
    """What the disk holds after recovery."""

    hard_state: HardState
    snapshot: Snapshot
    offset: int
    offset_term: int
    entries: Sequence[Entry]

    def raft_log(self) -> RaftLog:
        return RaftLog(snapshot=self.snapshot, offset=self.offset, offset_term=self.offset_term, entries=self.entries)


class RaftStore:
    def __init__(self, disk: Disk, metadata_dir: str, *, file_bytes_max: int = FILE_BYTES_MAX) -> None:
        self._disk = disk
        self.folder = f"{metadata_dir}/{FOLDER_NAME}"
        self._file_bytes_max = file_bytes_max
        # First index of every log file, and the position of each of its entries.
        self._files: list[_LogFile] = []
        self._snapshot_index = 0
        self._synced = 0
        self.bytes_since_snapshot = 0

    # -- start

    def stored_seed(self) -> Voters | None:
        """The seed of an earlier load; None when there was none yet. Writes nothing."""
        path = self._path(STATE_NAME)
        return self._read_state(path).seed if self._disk.exists(path) else None

    def load(self, seed: Voters) -> Stored:
        """Read everything and cut a torn tail. `seed`: the voters of a new quorum; ignored if there is a log.

        Data of a killed process may be in the page cache only. From now on the node votes and acknowledges by what it
        found here, so everything is synced.
        """
        self._disk.make_folder(self.folder, private=True)
        self._disk.sync_folder(self.folder.rpartition("/")[0])  # otherwise a power loss may remove the folder
        self._disk.sync_folder(self.folder)
        hard_state = self._load_state(seed)
        snapshot = self._load_snapshot(hard_state)
        entries = self._load_entries()
        if not entries or _is_stale(entries, snapshot):
            # Also after a crash between installing a leader's snapshot and dropping the log that it replaced.
            self._drop_log()
            entries = []
        self._snapshot_index = snapshot.index
        self._synced = entries[-1].index if entries else snapshot.index
        self.bytes_since_snapshot = sum(len(entry.data) for entry in entries if entry.index > snapshot.index)
        return self._stored(hard_state, snapshot, entries)

    def _stored(self, hard_state: HardState, snapshot: Snapshot, entries: list[Entry]) -> Stored:
        """The term of the entry before the first kept one is known only if that is the snapshot's last entry."""
        if not entries or entries[0].index > snapshot.index:
            return Stored(hard_state, snapshot, snapshot.index, snapshot.term, entries)
        first, rest = entries[0], entries[1:]
        if first.index == 1:
            return Stored(hard_state, snapshot, 0, 0, entries)
        return Stored(hard_state, snapshot, first.index, first.term, rest)

    def _load_state(self, seed: Voters) -> HardState:
        path = self._path(STATE_NAME)
        if not self._disk.exists(path):
            if self._names(LOG_SUFFIX) or self._names(SNAPSHOT_SUFFIX):
                raise Refusal(f"{self.folder} has a metadata log but no {STATE_NAME}; restore it from a backup")
            state = HardState(seed=seed)
            self._disk.replace_file(path, msgspec.json.encode(state))
            return state
        return self._read_state(path)

    def _read_state(self, path: str) -> HardState:
        try:
            state = msgspec.json.decode(self._disk.read_file(path), type=HardState)
        except msgspec.DecodeError as error:
            raise Refusal(f"{path} is damaged ({error}); restore it from a backup") from error
        if state.term > TERM_MAX:
            raise Refusal(
                f"{path} has term {state.term}, which no quorum reaches by elections and after which none is possible; "
                f"restore it from a backup or, in a quorum of several, remove {self.folder}"
            )
        return state

    def _load_snapshot(self, hard_state: HardState) -> Snapshot:
        names = self._names(SNAPSHOT_SUFFIX)
        if not names:
            return Snapshot(0, 0, hard_state.seed, b"")
        path = self._path(names[-1])
        snapshot = frames.decode_snapshot(self._disk.read_file(path))
        if snapshot is None:
            raise Refusal(
                f"{path} is damaged; restore it from a backup or, in a quorum of several, remove {self.folder}"
            )
        return snapshot

    def _load_entries(self) -> list[Entry]:
        entries: list[Entry] = []
        names = self._names(LOG_SUFFIX)
        for name in names:
            path = self._path(name)
            file = self._disk.open(path)
            first = int(name.removesuffix(LOG_SUFFIX))
            if entries and first != entries[-1].index + 1:
                raise Refusal(f"{path} does not follow entry {entries[-1].index}; restore {self.folder} from a backup")
            scan = frames.scan(file.read(0, file.size()), first_index=first)
            if scan.torn_at is not None:
                if scan.lost_synced or name != names[-1]:
                    raise Refusal(f"{path} is damaged at byte {scan.torn_at}, in entries that were synced to disk")
                file.truncate(scan.torn_at)
            if name == names[-1]:
                file.sync()
            entries += scan.entries
            self._files.append(_LogFile(first, path, file, scan.positions))
        return entries

    # -- writing

    def persist(self, hard_state: HardState | None, snapshot: Snapshot | None, entries: Sequence[Entry]) -> None:
        """Written in this order, so that a crash in between leaves a valid state."""
        if hard_state is not None:
            self._disk.replace_file(self._path(STATE_NAME), msgspec.json.encode(hard_state))
        if snapshot is not None:
            self.save_snapshot(snapshot)
            self._drop_log()
            self._synced = snapshot.index
        if entries:
            self._cut_from(entries[0].index)
            self._append(entries)

    def save_snapshot(self, snapshot: Snapshot) -> None:
        name = f"{snapshot.index:020}-{snapshot.term:010}{SNAPSHOT_SUFFIX}"
        self._disk.replace_file(self._path(name), frames.encode_snapshot(snapshot))
        for old in self._names(SNAPSHOT_SUFFIX):
            if old < name:
                self._disk.remove(self._path(old))
        self._snapshot_index = snapshot.index
        self.bytes_since_snapshot = 0

    def drop_before(self, index: int) -> None:
        """Remove files whose entries are all before `index`; the last file stays."""
        while len(self._files) > 1 and self._files[1].first_index <= index:
            self._remove(self._files.pop(0))

    def close(self) -> None:
        for log_file in self._files:
            log_file.file.close()
        self._files.clear()

    def _append(self, entries: Sequence[Entry]) -> None:
        log_file = self._files[-1] if self._files else None
        if log_file is None or log_file.file.size() >= self._file_bytes_max:
            log_file = self._new_file(entries[0].index)
        encoded = [frames.encode_entry(entry, synced=self._synced) for entry in entries]
        log_file.append(encoded)
        self._synced = entries[-1].index
        self.bytes_since_snapshot += sum(map(len, encoded))

    def _new_file(self, first_index: int) -> "_LogFile":
        path = self._path(f"{first_index:020}{LOG_SUFFIX}")
        log_file = _LogFile(first_index, path, self._disk.open(path, create=True), [])
        self._disk.sync_folder(self.folder)
        self._files.append(log_file)
        return log_file

    def _cut_from(self, index: int) -> None:
        """Drop entries from `index` on; they were never committed and are replaced."""
        if index > self._synced:
            return
        while self._files and self._files[-1].first_index >= index:
            self._remove(self._files.pop())
        if self._files:
            self._files[-1].cut_from(index)
        self._synced = index - 1

    def _drop_log(self) -> None:
        while self._files:
            self._remove(self._files.pop())

    def _remove(self, log_file: "_LogFile") -> None:
        """The folder is synced after each removal: a power loss must not bring back a file without its neighbours."""
        log_file.file.close()
        self._disk.remove(log_file.path)
        self._disk.sync_folder(self.folder)

    # -- names

    def _path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def _names(self, suffix: str) -> list[str]:
        return [name for name in self._disk.names(self.folder) if name.endswith(suffix)]


class _LogFile:
    """`positions`: the position of each entry."""

    def __init__(self, first_index: int, path: str, file: File, positions: list[int]) -> None:
        self.first_index, self.path, self.file, self.positions = first_index, path, file, positions

    def append(self, encoded: Sequence[bytes]) -> None:
        """Append and sync."""
        position = self.file.size()
        for frame in encoded:
            self.positions.append(position)
            position += len(frame)
        self.file.append([b"".join(encoded)])
        self.file.sync()

    def cut_from(self, index: int) -> None:
        kept = index - self.first_index
        if kept < len(self.positions):
            self.file.truncate(self.positions[kept])
            # Truncate before writing: old frames after half-written new ones would look like damage.
            self.file.sync()
            del self.positions[kept:]


def _is_stale(entries: Sequence[Entry], snapshot: Snapshot) -> bool:
    """Whether the log neither has the snapshot's last entry nor continues after it."""
    if entries[0].index > snapshot.index + 1 or entries[-1].index < snapshot.index:
        return True
    at_snapshot = snapshot.index - entries[0].index
    return at_snapshot >= 0 and entries[at_snapshot].term != snapshot.term
