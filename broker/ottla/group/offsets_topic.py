"""The offsets topic: made when the first group asks for its coordinator."""

import asyncio
import logging

from ottla.config import BrokerConfig
from ottla.errors import Code, KafkaError
from ottla.metadata.active import Controller
from ottla.metadata.commands import CreateTopics, NewTopic
from ottla.metadata.image import Image
from ottla.replica.settings import LiveSettings

__all__ = ["OFFSETS_TOPIC", "OffsetsTopic"]

log = logging.getLogger("ottla.group")

OFFSETS_TOPIC = "__consumer_offsets"
FACTOR = "offsets.topic.replication.factor"


class OffsetsTopic:
    def __init__(self, *, config: BrokerConfig, settings: LiveSettings, controller: Controller) -> None:
        self._config = config
        self._settings = settings
        self._controller = controller
        self._making = asyncio.Lock()

    async def make(self, image: Image) -> None:
        """KafkaError when it cannot be made; no error when it exists."""
        async with self._making:
            (outcome,) = await self._controller.submit(CreateTopics([self._topic(image)]))
        if not outcome.ok and outcome.code is not Code.topic_already_exists:
            log.warning("%s cannot be made: %s", OFFSETS_TOPIC, outcome.message)
            raise KafkaError(outcome.code, outcome.message)

    def _topic(self, image: Image) -> NewTopic:
        return NewTopic(
            OFFSETS_TOPIC,
            partitions=self._settings.broker("offsets.topic.num.partitions"),
            replication_factor=self._factor(image),
            configs=[
                ("cleanup.policy", "compact"),
                ("compression.type", "producer"),
                ("segment.bytes", str(self._settings.broker("offsets.topic.segment.bytes"))),
            ],
        )

    def _factor(self, image: Image) -> int:
        """What was set is meant, as in Kafka. The default shrinks to the brokers there are, so that one alone works."""
        wanted = int(self._settings.broker(FACTOR))
        return wanted if FACTOR in self._config.explicit else min(wanted, len(image.brokers))
