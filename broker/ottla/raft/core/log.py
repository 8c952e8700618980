"""The part of the Raft log that a node keeps in memory. Pure. Indexes begin at 1.

offset <= stable <= last;  offset <= commit <= last
offset: the last entry compacted away (its term is still known)
stable: the last entry known to be on disk
"""

from collections.abc import Sequence

from ottla.raft.core.messages import Entry, EntryKind, Snapshot, Voters

__all__ = ["RaftLog"]

# Overhead of an entry in a message.
ENTRY_OVERHEAD_BYTES = 32


class RaftLog:
    def __init__(self, *, snapshot: Snapshot, offset: int, offset_term: int, entries: Sequence[Entry] = ()) -> None:
        """As read from disk: everything is stable, and the entries in the snapshot are committed."""
        self.snapshot = snapshot
        self.unstable_snapshot: Snapshot | None = None  # a leader's, which is not on disk yet
        self.offset, self._offset_term = offset, offset_term
        self._entries = list(entries)
        self.stable = self.last_index
        self.commit = snapshot.index
        # Voter sets with the index from which they apply, oldest first.
        self._voters: list[tuple[int, Voters]] = [(snapshot.index, snapshot.voters)]
        for entry in self._entries:
            if entry.index > snapshot.index:
                self._note_voters(entry)

    @property
    def last_index(self) -> int:
        return self.offset + len(self._entries)

    @property
    def last_term(self) -> int:
        return self._entries[-1].term if self._entries else self._offset_term

    @property
    def voters(self) -> Voters:
        return self._voters[-1][1]

    @property
    def voters_index(self) -> int:
        return self._voters[-1][0]

    def term_at(self, index: int) -> int | None:
        """None: compacted away, or not there yet."""
        if index == self.offset:
            return self._offset_term
        if self.offset < index <= self.last_index:
            return self._entries[index - self.offset - 1].term
        return None

    def slice(self, *, start: int, stop: int, entries_max: int, bytes_max: int) -> tuple[Entry, ...]:
        """Entries from `start` to `stop` inclusive within the limits, but at least one if there is one."""
        chosen: list[Entry] = []
        size = 0
        first = start - self.offset - 1
        for entry in self._entries[first : min(stop - self.offset, first + entries_max)]:
            size += ENTRY_OVERHEAD_BYTES + len(entry.data)
            if chosen and size > bytes_max:
                break
            chosen.append(entry)
        return tuple(chosen)

    def unstable(self) -> tuple[Entry, ...]:
        return tuple(self._entries[self.stable - self.offset :])

    def uncommitted(self) -> Sequence[Entry]:
        return self._entries[self.commit - self.offset :]

    def append(self, entry: Entry) -> None:
        assert entry.index == self.last_index + 1
        self._entries.append(entry)
        self._note_voters(entry)

    def merge(self, entries: Sequence[Entry]) -> None:
        """Append a leader's entries; from the first one that differs, they replace ours."""
        for entry in entries:
            if entry.index <= self.last_index:
                if self.term_at(entry.index) == entry.term or entry.index <= self.offset:
                    continue
                self._truncate(entry.index)
            self.append(entry)

    def _truncate(self, index: int) -> None:
        assert index > self.commit, "a committed entry would be cut off"
        del self._entries[index - self.offset - 1 :]
        self.stable = min(self.stable, index - 1)
        while self._voters[-1][0] >= index:
            self._voters.pop()

    def stable_to(self, index: int, term: int) -> None:
        """The entry is on disk. Ignored if it was replaced meanwhile."""
        if index > self.stable and self.term_at(index) == term:
            self.stable = index

    def commit_to(self, index: int) -> None:
        """Everything up to `index` is committed. The commit index never decreases."""
        self.commit = max(self.commit, index)

    def is_up_to_date(self, *, last_index: int, last_term: int) -> bool:
        """Whether a candidate's log is at least as complete as ours."""
        return (last_term, last_index) >= (self.last_term, self.last_index)

    def last_at_most(self, index: int, term: int) -> tuple[int, int]:
        """The last entry at or before `index` whose term is not above `term`: where two logs may still agree."""
        index = min(index, self.last_index)
        while index > self.offset and (self.term_at(index) or 0) > term:
            index -= 1
        return index, self.term_at(index) or 0

    def compact(self, snapshot: Snapshot, *, keep_from: int) -> None:
        """`snapshot` is this node's own, of applied entries; drop entries before `keep_from`."""
        assert self.snapshot.index <= snapshot.index <= self.commit
        self.snapshot = snapshot
        new_offset = max(min(keep_from - 1, snapshot.index, self.stable), self.offset)
        self._offset_term = self.term_at(new_offset) or 0
        del self._entries[: new_offset - self.offset]
        self.offset = new_offset
        newer = [item for item in self._voters if item[0] > snapshot.index]
        self._voters = [(snapshot.index, snapshot.voters), *newer]

    def restore(self, snapshot: Snapshot) -> None:
        """A leader's snapshot replaces everything."""
        self.snapshot = self.unstable_snapshot = snapshot
        self.offset, self._offset_term = snapshot.index, snapshot.term
        self._entries.clear()
        self.stable = self.commit = snapshot.index
        self._voters = [(snapshot.index, snapshot.voters)]

    def snapshot_stable(self, snapshot: Snapshot) -> None:
        """The snapshot is on disk. Ignored if a newer one arrived meanwhile."""
        if self.unstable_snapshot is snapshot:
            self.unstable_snapshot = None

    def voters_at(self, index: int) -> Voters:
        return next(voters for since, voters in reversed(self._voters) if since <= index)

    def voters_possible(self) -> list[Voters]:
        """Every voter set that may be the last committed one, as far as this node knows."""
        return [self.voters_at(self.commit), *(voters for since, voters in self._voters if since > self.commit)]

    def _note_voters(self, entry: Entry) -> None:
        if entry.kind is EntryKind.VOTERS:
            self._voters.append((entry.index, entry.voters()))
