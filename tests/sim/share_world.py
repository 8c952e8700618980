"""Share groups in the simulated fleet: their members take records, beside all that goes wrong in a World.

world = ShareWorld(seed); world.play()        raises Broken, as World does
"""

from collections.abc import Mapping
from typing import ClassVar

from ottla.metadata.decisions.commands import (
    IncrementalAlterConfigs,
    SettingChange,
    SettingOperation,
    UpdateFeatures,
    UpgradeType,
)
from ottla.metadata.decisions.features import SHARE_VERSION
from ottla.metadata.model.state import ResourceType
from sim.coordinated_world import CoordinatedWorld, find_coordinators
from sim.history import Cleanup
from sim.share_members import Deliveries, ShareMember
from sim.share_state_world import ShareStateWorld
from sim.topics import STAYS, Topics
from sim.world import HEAL_SECONDS_MAX, World

__all__ = ["ShareWorld"]

GROUP = "sharers"
MEMBERS = (2, 3)


class ShareWorld(CoordinatedWorld):
    settings: ClassVar[Mapping[str, str]] = {
        **ShareStateWorld.settings,
        "offsets.topic.num.partitions": "2",
        "group.share.min.session.timeout.ms": "100",
        "group.share.session.timeout.ms": "3000",
        "group.share.min.heartbeat.interval.ms": "100",
        "group.share.heartbeat.interval.ms": "500",
        "group.share.min.record.lock.duration.ms": "1000",
        "group.share.record.lock.duration.ms": "2000",
        "group.share.delivery.count.limit": "10",
    }
    topics: "ShareTopics"

    def _make_topics(self) -> "ShareTopics":
        return ShareTopics(self)

    @property
    def accepted(self) -> int:
        return sum(len(each.accepted) for each in self.topics.deliveries)


class ShareTopics(Topics):
    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.deliveries: list[Deliveries] = []
        self.members: list[ShareMember] = []

    def _choose_cleanup(self) -> Cleanup:
        """Every record is to be delivered."""
        return Cleanup.KEEP

    async def begin(self) -> None:
        await self._make(STAYS, self.random.randint(1, 2))
        await self._ask(UpdateFeatures([(SHARE_VERSION, 1, UpgradeType.UPGRADE)]))
        earliest = SettingChange("share.auto.offset.reset", SettingOperation.SET, "earliest")
        await self._ask(IncrementalAlterConfigs([((ResourceType.GROUP, GROUP), [earliest])]))
        await find_coordinators(self._world, "groups", "share_states")

    def start_clients(self) -> None:
        super().start_clients()
        world, trial = self._world, self._trials[STAYS]
        self.deliveries = [Deliveries(world.referee, index) for index in range(trial.partitions)]
        place = (STAYS, trial.id, self.deliveries, world.network, world.referee)
        self.members = [ShareMember(GROUP, *place, world.chance()) for _ in range(self.random.choice(MEMBERS))]
        for member in self.members:
            self.run(member.run())

    async def judge(self) -> None:
        await super().judge()
        for member in self.members:
            member.releases = 0.0
        await self._world.until(self._all_are_delivered, HEAL_SECONDS_MAX, "not every record is delivered")

    def _all_are_delivered(self) -> bool:
        producers = self._trials[STAYS].producers
        return all(
            offset in self.deliveries[producer.index].delivered
            for producer in producers
            for _, offset in producer.acknowledged
        )
