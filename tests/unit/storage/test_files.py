"""The bounded cache of open files."""

import os
import threading

import pytest
from ottla.storage.directories.files import FileCache, Handle
from ottla.system import RealDisk


def open_descriptors(folder):
    found = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
    return sorted(os.readlink(path) for path in found if os.path.exists(path) and os.readlink(path).startswith(folder))


@pytest.fixture
def handles(tmp_path):
    for name in "abcde":
        (tmp_path / name).write_bytes(name.encode())
    return [Handle(str(tmp_path / name)) for name in "abcde"]


def test_the_least_used_is_let_go(tmp_path, handles):
    files = FileCache(RealDisk(), 2)
    a, b, c, *_ = handles
    files.open(a)
    files.open(b)
    for handle in (a, b):
        handle.recent = False
    files.open(a)
    files.open(c)
    assert (a.opened is not None, b.opened is None, len(files)) == (True, True, 2)
    assert open_descriptors(str(tmp_path)) == [a.path, c.path]


def test_a_file_in_use_stays_open_until_it_is_dropped(tmp_path, handles):
    files = FileCache(RealDisk(), 1)
    held = files.open(handles[0])
    files.open(handles[1])
    assert handles[0].opened is None
    assert held.file.read(0, 1) == b"a"
    del held
    assert open_descriptors(str(tmp_path)) == [handles[1].path]


def test_forget(tmp_path, handles):
    files = FileCache(RealDisk(), 3)
    files.open(handles[0])
    files.forget(handles[0])
    files.forget(handles[0])
    assert (len(files), open_descriptors(str(tmp_path))) == (0, [])


def test_a_missing_file_is_an_error_and_takes_no_place(tmp_path):
    files = FileCache(RealDisk(), 1)
    with pytest.raises(FileNotFoundError):
        files.open(Handle(str(tmp_path / "missing")))
    assert len(files) == 0


def test_threads_never_meet_a_closed_file(handles):
    files = FileCache(RealDisk(), 1)
    failures = []

    def use(handle, content):
        for _ in range(300):
            opened = files.open(handle)
            if opened.file.read(0, 1) != content:
                failures.append(handle.path)

    threads = [threading.Thread(target=use, args=(h, h.path[-1].encode())) for h in handles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
