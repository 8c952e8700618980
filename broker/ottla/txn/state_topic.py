"""The state topic: made when the first transactional id asks for its coordinator."""

import asyncio
import logging

from ottla.config import BrokerConfig
from ottla.errors import Code, KafkaError
from ottla.metadata.active import Controller
from ottla.metadata.commands import CreateTopics, NewTopic
from ottla.metadata.image import Image
from ottla.replica.settings import LiveSettings

__all__ = ["STATE_TOPIC", "StateTopic"]

log = logging.getLogger("ottla.txn")

STATE_TOPIC = "__transaction_state"
FACTOR, MIN_ISR = "transaction.state.log.replication.factor", "transaction.state.log.min.isr"


class StateTopic:
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
            log.warning("%s cannot be made: %s", STATE_TOPIC, outcome.message)
            raise KafkaError(outcome.code, outcome.message)

    def _topic(self, image: Image) -> NewTopic:
        factor = self._factor(image)
        return NewTopic(
            STATE_TOPIC,
            partitions=self._settings.broker("transaction.state.log.num.partitions"),
            replication_factor=factor,
            configs=[
                ("cleanup.policy", "compact"),
                ("compression.type", "uncompressed"),
                ("min.insync.replicas", str(self._min_isr(factor))),
                ("segment.bytes", str(self._settings.broker("transaction.state.log.segment.bytes"))),
                ("unclean.leader.election.enable", "false"),
            ],
        )

    def _factor(self, image: Image) -> int:
        """What was set is meant, as in Kafka. The default shrinks to the brokers there are, so that one alone works."""
        wanted = int(self._settings.broker(FACTOR))
        return wanted if FACTOR in self._config.explicit else min(wanted, len(image.brokers))

    def _min_isr(self, factor: int) -> int:
        wanted = int(self._settings.broker(MIN_ISR))
        return wanted if MIN_ISR in self._config.explicit else min(wanted, factor)
