"""The loop appends while threads read, flush and search."""

import threading

from ottla.storage.directories.files import FileCache
from ottla.wire.batch import crc_matches, iterate
from support.logs import fill, make_batch, open_log, read_all, system_at


def test_threads_read_and_flush_while_the_log_grows_and_shrinks(tmp_path):
    system = system_at()
    log = open_log(
        tmp_path, system=system, files=FileCache(system.disk, 2), segment_bytes=30_000, retention_bytes=300_000
    )
    failures, done = [], threading.Event()

    def guarded(work):
        def run():
            try:
                while not done.is_set():
                    work()
            except Exception as failure:
                failures.append(failure)

        return threading.Thread(target=run)

    def consume():
        start = offset = log.start_offset
        end = log.end_offset
        while offset < end:
            if offset < log.start_offset:
                return
            try:
                data = log.read_cold(start=offset, end=end, size_bytes_max=20_000, whole_first=True)
            except Exception:
                if offset < log.start_offset:  # deleted meanwhile
                    return
                raise
            batches = list(iterate(data))
            assert batches and all(crc_matches(batch) for batch in batches), (start, offset, end)
            assert batches[0].base_offset <= offset
            offset = batches[-1].last_offset + 1

    def flush():
        before = log.end_offset
        assert log.flush() >= before

    threads = [guarded(consume), guarded(consume), guarded(flush), guarded(lambda: log.offset_for_timestamp(0))]
    for thread in threads:
        thread.start()
    for _ in range(150):
        fill(log, 8, size=300)
        log.delete_expired(log.clock.wall_ms(), log.end_offset)
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert log.start_offset > 0 and read_all(log)[-1].last_offset == 150 * 8 * 3 - 1


def test_a_flush_covers_what_was_there_when_it_began(tmp_path):
    log = open_log(tmp_path, segment_bytes=2_000)
    fill(log, 30)
    assert log.flush() == 90
    log.append(make_batch(3), leader_epoch=0)
    assert (log.flushed_offset, log.end_offset) == (90, 93)
