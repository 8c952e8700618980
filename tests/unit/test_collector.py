"""How much Python's collector does at once in a node."""

import json
import subprocess
import sys

from ottla.collector import GROWTH_BLOCKS_MIN, FullCollections

YOUNG_MAX = 15_000  # four times the youngest, and some

# In an interpreter of its own, since the collector is everybody's: refused requests leave cycles with their frames,
# while what is to stay grows.
REFUSALS = """
import gc, json
from ottla.collector import settle_objects

settle_objects()
seen = []
gc.callbacks.append(lambda phase, info: phase == "stop" and seen.append((info["generation"], info["collected"])))

def refused(number):
    try:
        raise ValueError(number)
    except ValueError as error:
        kept = error
        return [number]

stays = [refused(number) for number in range(100_000)]
print(json.dumps(seen))
"""


def collections() -> list[tuple[int, int]]:
    done = subprocess.run([sys.executable, "-c", REFUSALS], stdout=subprocess.PIPE, check=True, timeout=60)
    return [tuple(each) for each in json.loads(done.stdout)]


def test_no_collection_has_much_to_do():
    seen = collections()
    assert sum(collected for _, collected in seen) > 100_000, "the garbage was not found"
    assert max(collected for _, collected in seen) < YOUNG_MAX
    assert {generation for generation, _ in seen} <= {0, 1}


def test_all_objects_are_looked_at_when_their_memory_has_doubled():
    blocks, made = 2 * GROWTH_BLOCKS_MIN, 0

    def collect() -> None:
        nonlocal blocks, made
        blocks, made = blocks - 1, made + 1

    full = FullCollections(blocks=lambda: blocks, collect=collect)
    blocks = 4 * GROWTH_BLOCKS_MIN - 1
    full.check()
    assert made == 0
    blocks += 1
    full.check()
    assert made == 1
    full.check()
    blocks += 2 * GROWTH_BLOCKS_MIN
    full.check()
    assert made == 1, "it counts from what was left of the last one"


def test_a_small_heap_may_grow_by_more_than_itself():
    blocks, made = 10, []
    full = FullCollections(blocks=lambda: blocks, collect=lambda: made.append(blocks))
    blocks = GROWTH_BLOCKS_MIN
    full.check()
    assert not made
    blocks += 10
    full.check()
    assert made
