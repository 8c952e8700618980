"""What transactional clients tried and were answered, and what readers may see of it. It only checks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sim.invariants import Referee

__all__ = ["Entry", "Seen", "TxnHistory"]

Seen = tuple[int, str]  # offset, value


@dataclass(eq=False)
class Entry:
    """A transaction: inputs by output partition. It `may_show` from the moment at which its commit is asked for."""

    serial: int
    copier: str
    rows: dict[int, list[int]] = field(default_factory=dict)
    may_show: bool = False
    is_committed: bool = False

    def value(self, number: int) -> bytes:
        return f"{self.copier}:{self.serial}:{number}".encode()

    @property
    def outputs(self) -> list[tuple[int, int]]:
        return sorted((partition, number) for partition, numbers in self.rows.items() for number in numbers)


class TxnHistory:
    def __init__(self, referee: Referee) -> None:
        self.referee = referee
        self.entries: list[Entry] = []

    @property
    def committed(self) -> int:
        return sum(entry.is_committed for entry in self.entries)

    def open(self, copier: str) -> Entry:
        entry = Entry(len(self.entries), copier)
        self.entries.append(entry)
        return entry

    def shown(self, partition: int, value: str) -> None:
        """To a reader of committed records, at any time."""
        entry = self.entries[int(value.split(":")[1])]
        if not entry.may_show:
            self.referee.object(f"{value} in {partition} is read as committed, but nobody could commit it")

    def check(self, visible: Mapping[int, Sequence[Seen]], positions: Mapping[str, int]) -> None:
        """At the end. `visible`: what the readers see by partition; `positions`: the offset of each copier's group."""
        found: dict[int, list[tuple[int, int]]] = {}
        for partition, rows in visible.items():
            self._check_order(partition, rows)
            for _, value in rows:
                self.shown(partition, value)
                _, serial, number = value.split(":")
                found.setdefault(int(serial), []).append((partition, int(number)))
        for entry in self.entries:
            self._check_whole(entry, sorted(found.get(entry.serial, [])))
        for copier, position in positions.items():
            self._check_position(copier, position, found)

    def _check_whole(self, entry: Entry, found: list[tuple[int, int]]) -> None:
        if found == entry.outputs or (not found and not entry.is_committed):
            return
        kind = "lost" if not found else "torn" if set(found) < set(entry.outputs) else "there twice"
        self.referee.object(f"transaction {entry.serial} of {entry.copier} is {kind}: {found} of {entry.outputs}")

    def _check_order(self, partition: int, rows: Iterable[Seen]) -> None:
        last: dict[str, int] = {}
        for offset, value in rows:
            copier, _, number = value.split(":")
            if int(number) <= last.get(copier, -1):
                self.referee.object(f"{value} at {offset} of {partition} comes after {last[copier]} of {copier}")
            last[copier] = int(number)

    def _check_position(self, copier: str, position: int, found: dict[int, list[tuple[int, int]]]) -> None:
        """Every input before the group's offset was copied once, and none after it."""
        own = [found.get(entry.serial, []) for entry in self.entries if entry.copier == copier]
        numbers = sorted(number for outputs in own for _, number in outputs)
        if numbers != list(range(max(position, 0))):
            self.referee.object(
                f"{copier} stands at {position}, but the output has {numbers[-6:]}, {len(numbers)} rows"
            )
