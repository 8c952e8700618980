"""What worlds with coordinators have in common: of groups, and of transactions."""

import asyncio

from ottla.errors import KafkaError
from ottla.metadata.decisions.commands import IncrementalAlterConfigs, SettingChange, SettingOperation
from ottla.metadata.model.state import ResourceType
from sim.world import POLL_SECONDS, START_SECONDS_MAX, World

__all__ = ["CoordinatedWorld", "find_coordinators"]

CLEANED_OFTEN = (("internal.segment.bytes", "4000"), ("min.cleanable.dirty.ratio", "0.01"))


class CoordinatedWorld(World):
    def _no_loose_ends(self) -> None:
        """An answer with Kafka's code that a process did not live to read is no failure."""
        self.loop.failures = [
            context for context in self.loop.failures if not isinstance(context.get("exception"), KafkaError)
        ]
        super()._no_loose_ends()


async def find_coordinators(world: World, *kinds: str) -> None:
    """Until their topics are there: the first one who asks for "groups" or "transactions" has them made."""
    life = world.nodes[0].life
    assert life is not None and life.shared is not None
    for kind in kinds:
        for _ in range(round(START_SECONDS_MAX / POLL_SECONDS)):
            try:
                question = life.coordinator(kind).leader_of("any")
                await world.loop.within(life.process, question, data=True)
                break
            except KafkaError:
                await asyncio.sleep(POLL_SECONDS)
    if world.options.cleaning:
        await world.loop.within(life.process, _clean_often(world), data=True)


async def _clean_often(world: World) -> None:
    """Small segments of the internal topics; those that the broker's own settings give are of a megabyte at least."""
    life, image = world.nodes[0].life, world.image()
    assert life is not None and image is not None
    topics = [name for name in image.topics if name.startswith("__")]
    changes = [SettingChange(key, SettingOperation.SET, value) for key, value in CLEANED_OFTEN]
    await life.controller.submit(IncrementalAlterConfigs([((ResourceType.TOPIC, name), changes) for name in topics]))
