"""Which histories the tests play. One that breaks names its seed, and how to see it again.

Narrow histories have new seeds in every run. Wide ones are still searched by hand (`make test-long ARGS=histories`, or
OTTLA_SIM_NEW_SEEDS=1): what they find has to be mended first, so the tests play the same ones each time.
"""

import os
from random import SystemRandom
from typing import TypeVar

from sim.invariants import Broken
from sim.options import NARROW, Options
from sim.world import World

W = TypeVar("W", bound=World)

WIDE_SEEDS_FROM = 888_100_000


def seeds_from(options: Options) -> int:
    if options == NARROW or os.environ.get("OTTLA_SIM_NEW_SEEDS"):
        return SystemRandom().getrandbits(32) << 16
    return WIDE_SEEDS_FROM


def played(world: W, *, replay: str) -> W:
    try:
        world.play()
    except Exception as error:
        raise Broken(f"seed {world.seed}: {error}; replay with {replay}") from error
    return world
