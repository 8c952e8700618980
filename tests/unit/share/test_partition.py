"""The automaton of a share-partition, case by case."""

import pytest
from ottla.errors import Code, KafkaError
from ottla.share.core.acknowledging import Acknowledgement
from ottla.share.core.messages import Delivery, ShareState, StateBatch
from ottla.share.core.partition import Acquired, Found, SharePartition

GAP, ACCEPT, RELEASE, REJECT = range(4)
AVAILABLE, ACKNOWLEDGED, ARCHIVED = Delivery.AVAILABLE, Delivery.ACKNOWLEDGED, Delivery.ARCHIVED
ANA, BEN = "ana", "ben"


class Bench:
    """A share-partition over a log of batches of ten; what it wants written is written when told to."""

    def __init__(self, state: ShareState | None = None, *, records_max: int = 100, deliveries_max: int = 3) -> None:
        state = ShareState(start=0) if state is None else state
        self.share = SharePartition(state, records_max=records_max, deliveries_max=deliveries_max)
        self.log = [Found(at, at + 9) for at in range(0, 1000, 10)]

    def acquire(
        self, member: str = ANA, records: int = 1, *, batch_size: int = 10, deadline: float = 30.0
    ) -> list[Acquired]:
        begin = self.share.next_offset
        if begin is None:
            return []
        found = [batch for batch in self.log if batch.last >= begin]
        return self.share.acquire(
            member, found, begin=begin, records_max=records, batch_size=batch_size, deadline=deadline
        )

    def acknowledge(self, first: int, last: int, *kinds: int, member: str = ANA) -> tuple[int, list[StateBatch]]:
        spans = self.share.acknowledge(member, [Acknowledgement(first, last, kinds)])
        written = self.share.to_write(spans)
        self.share.written(spans)
        return written

    def refusal(self, *acknowledgements: Acknowledgement, member: str = ANA) -> Code:
        with pytest.raises(KafkaError) as caught:
            self.share.acknowledge(member, acknowledgements)
        return caught.value.code


def test_acquired_records_are_nobody_elses() -> None:
    bench = Bench()
    assert bench.acquire(ANA) == [Acquired(0, 9, 1)]
    assert bench.acquire(BEN) == [Acquired(10, 19, 1)]
    assert bench.share.next_offset == 20
    assert (bench.share.start, bench.share.end) == (0, 20)


def test_whole_batches_in_portions() -> None:
    assert Bench().acquire(records=25, batch_size=15) == [Acquired(0, 19, 1), Acquired(20, 29, 1)]
    assert Bench().acquire(records=25, batch_size=5) == [Acquired(0, 9, 1), Acquired(10, 19, 1), Acquired(20, 29, 1)]
    assert Bench().acquire(records=25, batch_size=500) == [Acquired(0, 29, 1)]
    assert Bench().acquire(records=0) == []


def test_no_more_than_may_be_under_way() -> None:
    bench = Bench(records_max=15)
    assert bench.acquire(records=100, batch_size=100) == [Acquired(0, 14, 1)]
    assert bench.share.next_offset is None
    bench.acknowledge(0, 4, ACCEPT)
    assert bench.share.next_offset == 15
    assert bench.acquire(BEN, records=100) == [Acquired(15, 19, 1)]
    bench.acknowledge(5, 6, RELEASE)
    assert bench.acquire(BEN, records=100) == [Acquired(5, 6, 2)], "what is under way already takes no room"


def test_accepted_records_move_the_start() -> None:
    bench = Bench()
    bench.acquire(records=20)
    assert bench.acknowledge(10, 19, ACCEPT) == (0, [StateBatch(10, 19, ACKNOWLEDGED, 1)])
    assert bench.share.start == 0
    assert bench.acknowledge(0, 9, ACCEPT) == (20, [])
    assert (bench.share.start, bench.share.end, bench.share.next_offset) == (20, 20, 20)


def test_one_kind_for_each_offset() -> None:
    bench = Bench()
    bench.acquire()
    kinds = (ACCEPT, ACCEPT, RELEASE, REJECT, GAP, ACCEPT, RELEASE, RELEASE, ACCEPT, ACCEPT)
    assert bench.acknowledge(0, 9, *kinds) == (
        2,
        [
            StateBatch(2, 2, AVAILABLE, 1),
            StateBatch(3, 4, ARCHIVED, 1),
            StateBatch(5, 5, ACKNOWLEDGED, 1),
            StateBatch(6, 7, AVAILABLE, 1),
            StateBatch(8, 9, ACKNOWLEDGED, 1),
        ],
    )
    assert bench.acquire(BEN) == [Acquired(2, 2, 2), Acquired(6, 7, 2)], "a whole batch of the log"


@pytest.mark.parametrize(
    ("acknowledgements", "code"),
    [
        ([Acknowledgement(0, 9, (4,))], Code.invalid_request),
        ([Acknowledgement(0, 9, (-1,))], Code.invalid_request),
        ([Acknowledgement(0, 9, ())], Code.invalid_request),
        ([Acknowledgement(0, 9, (1, 1))], Code.invalid_request),
        ([Acknowledgement(9, 0, (1,))], Code.invalid_request),
        ([Acknowledgement(5, 9, (1,)), Acknowledgement(0, 4, (1,))], Code.invalid_request),
        ([Acknowledgement(0, 5, (1,)), Acknowledgement(5, 9, (1,))], Code.invalid_request),
        ([Acknowledgement(0, 20, (1,))], Code.invalid_request),
        ([Acknowledgement(0, 19, (1,))], Code.invalid_record_state),
        ([Acknowledgement(0, 4, (1,)), Acknowledgement(12, 12, (1,))], Code.invalid_record_state),
    ],
)
def test_all_or_nothing(acknowledgements: list[Acknowledgement], code: Code) -> None:
    bench = Bench()
    bench.acquire(ANA)
    bench.acquire(BEN)
    assert bench.refusal(*acknowledgements) is code
    assert bench.share.to_write([]) == (0, [])
    assert bench.acknowledge(0, 9, ACCEPT) == (10, [])


def test_acknowledged_once() -> None:
    bench = Bench()
    bench.acquire(records=20)
    spans = bench.share.acknowledge(ANA, [Acknowledgement(10, 19, (ACCEPT,))])
    again = Acknowledgement(10, 19, (ACCEPT,))
    assert bench.refusal(again) is Code.invalid_record_state, "under way to the log"
    bench.share.written(spans)
    assert bench.refusal(again) is Code.invalid_record_state
    bench.acknowledge(0, 9, ACCEPT)
    assert bench.share.acknowledge(ANA, [again]) == [], "before the start: done, and no harm"


def test_released_records_are_available_when_that_is_written() -> None:
    bench = Bench()
    bench.acquire()
    spans = bench.share.acknowledge(ANA, [Acknowledgement(0, 9, (RELEASE,))])
    assert bench.share.next_offset == 10
    bench.share.written(spans)
    assert bench.acquire(BEN) == [Acquired(0, 9, 2)]


def test_what_cannot_be_written_is_taken_back() -> None:
    bench = Bench()
    bench.acquire()
    spans = bench.share.acknowledge(ANA, [Acknowledgement(0, 4, (ACCEPT,)), Acknowledgement(5, 9, (RELEASE,))])
    bench.share.not_written(spans)
    assert bench.share.start == 0 and bench.share.next_offset == 10
    assert bench.refusal(Acknowledgement(0, 9, (ACCEPT,)), member=BEN) is Code.invalid_record_state
    assert bench.share.expire(29.0) == []
    assert bench.acknowledge(0, 4, ACCEPT) == (5, [])
    assert bench.share.expire(30.0) == [(5, 9)]


def test_delivered_too_often() -> None:
    bench = Bench(deliveries_max=2)
    bench.acquire()
    assert bench.acknowledge(0, 9, RELEASE) == (0, [StateBatch(0, 9, AVAILABLE, 1)])
    assert bench.acquire() == [Acquired(0, 9, 2)]
    assert bench.acknowledge(0, 4, RELEASE) == (5, [])
    assert bench.share.expire(30.0) == [(5, 9)]
    assert bench.share.start == 10


def test_locks_expire() -> None:
    bench = Bench()
    bench.acquire(ANA, deadline=30.0)
    bench.acquire(BEN, deadline=40.0)
    assert bench.share.expire(29.9) == []
    assert bench.share.expire(30.0) == [(0, 9)]
    assert bench.refusal(Acknowledgement(0, 9, (ACCEPT,))) is Code.invalid_record_state
    assert bench.acquire(BEN, deadline=60.0) == [Acquired(0, 9, 2)]
    assert bench.share.to_write([(0, 9)]) == (0, [StateBatch(0, 9, AVAILABLE, 1)]), "as if it was not acquired again"


def test_who_leaves_was_not_delivered_to() -> None:
    bench = Bench(deliveries_max=2)
    for _ in range(5):
        assert bench.acquire(records=20) == [Acquired(0, 9, 1), Acquired(10, 19, 1)]
        spans = bench.share.release(ANA)
        assert bench.share.to_write(spans) == (0, [StateBatch(0, 19, AVAILABLE, 0)])
        bench.share.written(spans)
    assert bench.share.release(ANA) == []


def test_the_log_begins_later() -> None:
    bench = Bench()
    bench.acquire(records=20)
    spans = bench.share.acknowledge(ANA, [Acknowledgement(0, 14, (ACCEPT,))])
    bench.share.begin_at(12)
    assert bench.share.to_write(spans) == (15, [])
    bench.share.written(spans)
    assert bench.share.start == 15
    bench.share.begin_at(500)
    assert (bench.share.start, bench.share.end, bench.share.next_offset) == (500, 500, 500)
    assert bench.share.acknowledge(ANA, [Acknowledgement(15, 19, (ACCEPT,))]) == []
    bench.share.begin_at(100)
    assert bench.share.start == 500


def test_holes_in_the_log() -> None:
    bench = Bench(records_max=25)
    bench.log = [Found(10, 19), Found(40, 49), Found(80, 89)]
    assert bench.acquire(records=1) == [Acquired(10, 19, 1)], "however wide the hole before it is"
    assert bench.share.start == 10
    assert bench.acquire(BEN) == [] and bench.share.end == 35, "but this one is between records that are under way"
    assert bench.share.next_offset is None
    bench.acknowledge(10, 19, ACCEPT)
    assert bench.share.start == 35
    assert bench.acquire(BEN) == [Acquired(40, 49, 1)]


def test_compacted_away_while_it_was_available() -> None:
    bench = Bench()
    bench.acquire(records=20)
    bench.acknowledge(5, 14, RELEASE)
    bench.log[0:2] = [Found(12, 19)]
    assert bench.acquire(BEN, records=3) == [Acquired(12, 14, 2)]
    assert bench.acknowledge(0, 4, ACCEPT) == (12, []), "5 to 11 are gone"


def test_what_is_not_for_consumers_is_passed_over() -> None:
    bench = Bench()
    bench.log[1] = Found(10, 10, is_for_consumers=False)
    bench.log.insert(2, Found(11, 19))
    assert bench.acquire(records=15, batch_size=20) == [Acquired(0, 9, 1), Acquired(11, 19, 1)]
    assert bench.acknowledge(0, 9, ACCEPT) == (11, [])


def test_recovered() -> None:
    batches = (StateBatch(20, 29, ACKNOWLEDGED, 1), StateBatch(5, 9, AVAILABLE, 2), StateBatch(12, 13, ARCHIVED, 3))
    bench = Bench(ShareState(7, 5, batches))
    assert (bench.share.state_epoch, bench.share.start, bench.share.end) == (7, 5, 30)
    assert bench.acquire(records=100, batch_size=100)[:4] == [
        Acquired(5, 9, 3),
        Acquired(10, 11, 1),
        Acquired(14, 19, 1),
        Acquired(30, 104, 1),
    ]


def test_recovered_from_nothing_but_what_is_done() -> None:
    bench = Bench(ShareState(0, 5, (StateBatch(5, 9, ACKNOWLEDGED, 1), StateBatch(10, 11, ARCHIVED, 5))))
    assert (bench.share.start, bench.share.end) == (12, 12)
