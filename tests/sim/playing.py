"""Which histories the tests play. One that breaks names its seed, and how to see it again.

Narrow histories have new seeds whenever the broker's code changes, so the same code passes or fails each time alike,
whatever its commit is called. Wide ones are always the same. New ones of both are searched by hand: `make test-long
ARGS=histories`, or OTTLA_SIM_NEW_SEEDS=1.
"""

import functools
import os
import subprocess
from pathlib import Path
from random import Random, SystemRandom
from typing import TypeVar

from sim.invariants import Broken
from sim.options import NARROW, Options
from sim.world import World

W = TypeVar("W", bound=World)

WIDE_SEEDS_FROM = 888_100_000


def seeds_from(options: Options = NARROW) -> int:
    if os.environ.get("OTTLA_SIM_NEW_SEEDS"):
        return SystemRandom().getrandbits(32) << 16
    return Random(code()).getrandbits(32) << 16 if options == NARROW else WIDE_SEEDS_FROM


@functools.cache
def code() -> str:
    """Git's name for the committed content of the broker; nothing outside of git."""
    command = ["git", "rev-parse", "HEAD:broker/ottla"]
    asked = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return asked.stdout.strip()


def played(world: W, *, replay: str) -> W:
    try:
        world.play()
    except Exception as error:
        raise Broken(f"seed {world.seed}: {error}; replay with {replay}") from error
    return world
