"""An internal topic that keeps a coordinator's state. It is created when the first client looks for the coordinator."""

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import ClassVar

from ottla.config import BrokerConfig
from ottla.errors import Code, KafkaError
from ottla.metadata.decisions.commands import CreateTopics, NewTopic
from ottla.metadata.model.image import Image
from ottla.metadata.runtime.active import Controller
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.replica.settings import LiveSettings

__all__ = ["InternalTopic"]

log = logging.getLogger("ottla.coordination")


class InternalTopic(ABC):
    name: ClassVar[str]
    partitions_setting: ClassVar[str]
    factor_setting: ClassVar[str]

    def __init__(self, *, config: BrokerConfig, settings: LiveSettings, controller: Controller) -> None:
        self._config = config
        self._settings = settings
        self._controller = controller
        self._making = asyncio.Lock()

    async def make(self, feed: MetadataFeed) -> None:
        """Create the topic unless it exists. KafkaError when that fails."""
        async with self._making:
            if self.name in feed.image.topics:
                return  # a concurrent request created it
            (outcome,) = await self._controller.submit(CreateTopics([self._topic(feed.image)]))
        if not outcome.ok and outcome.code is not Code.topic_already_exists:
            log.warning("%s cannot be created: %s", self.name, outcome.message)
            raise KafkaError(outcome.code, outcome.message)

    def _topic(self, image: Image) -> NewTopic:
        factor = self._limited(self.factor_setting, most=len(image.brokers))
        return NewTopic(
            self.name,
            partitions=self._settings.broker(self.partitions_setting),
            replication_factor=factor,
            configs=self._configs(factor),
        )

    @abstractmethod
    def _configs(self, factor: int) -> list[tuple[str, str]]: ...

    def _limited(self, setting: str, *, most: int) -> int:
        """An explicit setting is used as it is, as in Kafka. A default is limited to the number of brokers."""
        wanted = int(self._settings.broker(setting))
        return wanted if setting in self._config.explicit else min(wanted, most)
