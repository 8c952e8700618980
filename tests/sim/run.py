"""Replay a history: python -m sim.run SEED [--trace] [--log]"""

import hashlib
import logging
import sys

from sim.world import World


def main() -> None:
    seed = int(sys.argv[1])
    world = World(seed)
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
