"""A history that breaks names its seed, and how to see it again."""

from typing import TypeVar

from sim.invariants import Broken
from sim.world import World

W = TypeVar("W", bound=World)


def played(world: W, *, replay: str) -> W:
    try:
        world.play()
    except Exception as error:
        raise Broken(f"seed {world.seed}: {error}; replay with {replay}") from error
    return world
