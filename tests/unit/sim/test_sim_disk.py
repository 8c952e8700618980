"""The simulated disk forgets what a real one may forget, and nothing else."""

from random import Random

from sim.disk import Platter, SimDisk


def open_disk(platter: Platter) -> SimDisk:
    return SimDisk(platter, now_ms=lambda: 0, on_crash=lambda: None)


def after_power_loss(seed: int) -> SimDisk:
    platter = Platter(Random(seed))
    disk = open_disk(platter)
    disk.replace_file("/data/safe", b"safe")
    file = disk.open("/data/log", create=True)
    disk.sync_folder("/data")
    file.append([b"synced"])
    file.sync()
    file.append([b" and not"])
    disk.make_folder("/data/folder")
    disk.replace_file("/data/folder/inside", b"lost with its folder")
    platter.lose_power()
    return open_disk(platter)


def test_what_was_synced_is_there_after_every_power_loss() -> None:
    for seed in range(50):
        disk = after_power_loss(seed)
        assert disk.read_file("/data/safe") == b"safe"
        assert disk.read_file("/data/log").startswith(b"synced")


def test_what_was_not_may_be_torn_or_gone() -> None:
    disks = [after_power_loss(seed) for seed in range(50)]
    assert len({disk.read_file("/data/log") for disk in disks}) > 4
    assert {disk.exists("/data/folder/inside") for disk in disks} == {True, False}
