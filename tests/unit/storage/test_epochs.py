"""Leader epochs, as Kafka's LeaderEpochFileCache answers."""

import pytest
from ottla.storage.log.epochs import LeaderEpochs
from ottla.system import RealDisk

THREE = ((1, 0), (3, 10), (4, 25))


def assigned(*entries):
    epochs = LeaderEpochs("unused")
    for epoch, start in entries:
        epochs.assign(epoch, start)
    return epochs


@pytest.mark.parametrize(
    ("entries", "result"),
    [
        (THREE, THREE),
        (((1, 0), (1, 5)), ((1, 0),)),
        (((1, 0), (2, 5), (3, 5)), ((1, 0), (3, 5))),  # nothing was written in epoch 2
        (((1, 0), (4, 20), (3, 10)), ((1, 0), (3, 10))),  # epoch 4 was never real
        (((1, 5), (1, 3)), ((1, 3),)),
    ],
)
def test_assign(entries, result):
    epochs = assigned(*entries)
    assert (epochs.entries, epochs.latest) == (result, result[-1][0])


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [(-1, (-1, -1)), (0, (0, 0)), (1, (1, 10)), (2, (1, 10)), (3, (3, 25)), (4, (4, 40)), (5, (-1, -1))],
)
def test_end_offset_for(epoch, answer):
    assert assigned(*THREE).end_offset_for(epoch, 40) == answer


def test_an_empty_cache_knows_nothing():
    assert LeaderEpochs("unused").end_offset_for(0, 10) == (-1, -1)
    assert LeaderEpochs("unused").epoch_for_offset(0) == -1


@pytest.mark.parametrize(("end", "left"), [(26, THREE), (25, THREE[:2]), (11, THREE[:2]), (10, THREE[:1]), (0, ())])
def test_truncate_end(end, left):
    epochs = assigned(*THREE)
    epochs.truncate_end(end)
    assert (epochs.entries, epochs.latest) == (left, left[-1][0] if left else -1)


@pytest.mark.parametrize(
    ("start", "left"),
    [(0, THREE), (5, ((1, 5), (3, 10), (4, 25))), (10, THREE[1:]), (24, ((3, 24), (4, 25))), (99, ((4, 99),))],
)
def test_truncate_start(start, left):
    epochs = assigned(*THREE)
    epochs.truncate_start(start)
    assert epochs.entries == left


@pytest.mark.parametrize(("offset", "epoch"), [(0, 1), (9, 1), (10, 3), (24, 3), (99, 4)])
def test_epoch_for_offset(offset, epoch):
    assert assigned(*THREE).epoch_for_offset(offset) == epoch


def test_the_file_is_kafkas(tmp_path):
    path = str(tmp_path / "leader-epoch-checkpoint")
    epochs = LeaderEpochs.load(RealDisk(), path)
    epochs.save(RealDisk())
    assert not (tmp_path / "leader-epoch-checkpoint").exists(), "nothing to say yet"
    for epoch, start in THREE:
        epochs.assign(epoch, start)
    epochs.save(RealDisk())
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n3\n1 0\n3 10\n4 25\n"
    assert LeaderEpochs.load(RealDisk(), path).entries == THREE


@pytest.mark.parametrize("text", ["", "1\n0\n", "0\n2\n1 0\n", "0\n1\n1\n", "0\n1\nx y\n"])
def test_another_file_is_not_taken_for_it(tmp_path, text):
    (tmp_path / "file").write_text(text)
    with pytest.raises(ValueError):
        LeaderEpochs.load(RealDisk(), str(tmp_path / "file"))
