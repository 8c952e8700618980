"""Replay: python -m sim.run SEED [--groups | --share-states | --transactions [--only STEP]] [--trace] [--log]"""

import hashlib
import logging
import sys

from sim.group_world import GroupWorld
from sim.share_state_world import ShareStateWorld
from sim.txn_steps import Step
from sim.txn_world import TransactionWorld
from sim.world import World


def make(seed: int, options: list[str]) -> World:
    if "--transactions" in options:
        only = Step[options[options.index("--only") + 1]] if "--only" in options else None
        return TransactionWorld(seed, only=only)
    if "--share-states" in options:
        return ShareStateWorld(seed)
    return GroupWorld(seed) if "--groups" in options else World(seed)


def main() -> None:
    seed = int(sys.argv[1])
    world = make(seed, sys.argv[2:])
    if "--log" in sys.argv:
        handler = logging.Handler()
        handler.emit = lambda record: world.referee.note(f"  {record.name}: {record.getMessage()}")  # type: ignore
        logging.basicConfig(level=logging.INFO, handlers=[handler])
    else:
        logging.disable(logging.CRITICAL)
    try:
        world.play()
    finally:
        if "--trace" in sys.argv or "--log" in sys.argv:
            print("\n".join(world.referee.trace))
        digest = hashlib.sha256("\n".join(world.referee.trace).encode()).hexdigest()[:16]
        print(
            f"seed {seed}: {world.acknowledged} acknowledged, {world.loop.time():.1f} s, "
            f"{world.loop.steps} steps, {digest}"
        )


if __name__ == "__main__":
    main()
