"""The worker process of `worker.ProcessWorker`: reads jobs from its input, writes replies to its output."""

import copyreg
import os
import pickle
import signal
import sys
from struct import Struct
from typing import BinaryIO

from ottla.errors import KafkaError

__all__ = ["LENGTH", "serve"]

LENGTH = Struct(">Q")


def _reduce_kafka_error(error: KafkaError) -> tuple[type, tuple[object, ...]]:
    return type(error), (error.code, error.message)


copyreg.pickle(KafkaError, _reduce_kafka_error)


def serve(jobs: BinaryIO, replies: BinaryIO) -> None:
    while len(head := jobs.read(LENGTH.size)) == LENGTH.size:
        (length,) = LENGTH.unpack(head)
        reply = _perform(jobs.read(length))
        replies.write(LENGTH.pack(len(reply)))
        replies.write(reply)
        replies.flush()


def _perform(job: bytes) -> bytes:
    try:
        function, arguments = pickle.loads(job)
        return _packed(failed=False, value=function(*arguments))
    except Exception as error:
        try:
            reply = _packed(failed=True, value=error)
            pickle.loads(reply)
            return reply
        except Exception:  # an error that cannot be pickled is sent as text
            return _packed(failed=True, value=RuntimeError(f"{type(error).__name__}: {error}"))


def _packed(*, failed: bool, value: object) -> bytes:
    return pickle.dumps((failed, value), protocol=pickle.HIGHEST_PROTOCOL)


def main() -> None:
    os.nice(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the broker handles Ctrl-C and closes this process
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output of a job must not be read as a reply
    serve(sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
