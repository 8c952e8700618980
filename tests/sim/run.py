"""Plays the history of a seed again, exactly as it was.

python -m sim.run 3000000017                          replication and the quorum
python -m sim.run 2420000148 --groups --trace         what happened, line by line
python -m sim.run 17 --transactions --only MARKER_REPLICATED
"""

import argparse
import hashlib
import logging

from sim.group_world import GroupWorld
from sim.options import NARROW, WIDE
from sim.security_world import SecurityWorld
from sim.share_state_world import ShareStateWorld
from sim.share_world import ShareWorld
from sim.txn_steps import Step
from sim.txn_world import TransactionWorld
from sim.world import World


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m sim.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("seed", type=int)
    world = parser.add_mutually_exclusive_group()
    world.add_argument("--groups", action="store_true", help="with members of consumer groups")
    world.add_argument("--shares", action="store_true", help="with members of share groups")
    world.add_argument("--share-states", action="store_true", help="with the states of share groups")
    world.add_argument("--security", action="store_true", help="with changing rules and credentials")
    world.add_argument("--transactions", action="store_true", help="with transactional copiers")
    parser.add_argument(
        "--only", choices=[step.name for step in Step], help="crash at this step of a transaction's end"
    )
    parser.add_argument("--narrow", action="store_true", help="without what sim.options adds, as older seeds were")
    parser.add_argument("--trace", action="store_true", help="print what happened")
    parser.add_argument("--log", action="store_true", help="the same with the brokers' own logs")
    return parser.parse_args()


def make(chosen: argparse.Namespace) -> World:
    options = NARROW if chosen.narrow else WIDE
    if chosen.transactions:
        return TransactionWorld(chosen.seed, options, only=Step[chosen.only] if chosen.only else None)
    if chosen.shares:
        return ShareWorld(chosen.seed, options)
    if chosen.share_states:
        return ShareStateWorld(chosen.seed, options)
    if chosen.security:
        return SecurityWorld(chosen.seed, options)
    return GroupWorld(chosen.seed, options) if chosen.groups else World(chosen.seed, options)


def main() -> None:
    chosen = options()
    world = make(chosen)
    if chosen.log:
        handler = logging.Handler()
        handler.emit = lambda record: world.referee.note(f"  {record.name}: {record.getMessage()}")  # type: ignore
        logging.basicConfig(level=logging.INFO, handlers=[handler])
    else:
        logging.disable(logging.CRITICAL)
    try:
        world.play()
    finally:
        if chosen.trace or chosen.log:
            print("\n".join(world.referee.trace))
        digest = hashlib.sha256("\n".join(world.referee.trace).encode()).hexdigest()[:16]
        print(
            f"seed {chosen.seed}: {world.acknowledged} acknowledged, {world.loop.time():.1f} s, "
            f"{world.loop.steps} steps, {digest}"
        )


if __name__ == "__main__":
    main()
