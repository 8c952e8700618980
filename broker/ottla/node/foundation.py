"""The log dirs of a node and the cluster that they belong to."""

import uuid
from collections.abc import Callable, Sequence

from ottla.config import BrokerConfig
from ottla.errors import Refusal
from ottla.ids import uuid_text
from ottla.storage.core.names import TopicPartition
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.directories.directory import claim_all
from ottla.storage.directories.files import FileCache
from ottla.system import FileShares, System, file_limit

__all__ = ["Foundation"]


class Foundation:
    """Locks the log dirs, learns or decides the cluster id, and formats what is empty."""

    def __init__(
        self,
        config: BrokerConfig,
        system: System,
        *,
        on_lost: Callable[[Sequence[TopicPartition]], None],
        on_all_lost: Callable[[], None],
    ) -> None:
        self._config = config
        claimed = claim_all(system, config.log_dirs, cluster_id=config.cluster_id, node_id=config.node_id)
        self.directories = LogDirectories(
            claimed,
            system=system,
            files=FileCache(system.disk, FileShares.of(file_limit(), logs_wanted=config["ottla.open.files.max"]).logs),
            on_failure=lambda _, lost: on_lost(lost),
            on_all_failed=on_all_lost,
        )
        self.cluster_id = self.directories.cluster_id or config.cluster_id or self._new_cluster_id(system)
        self.directories.identify(cluster_id=self.cluster_id, node_id=config.node_id)

    def _new_cluster_id(self, system: System) -> str:
        if len(self._config.voters) > 1:
            raise Refusal(
                "the data directory is empty and the fleet has several voters: "
                "run `ottla format --cluster-id ID` with the same id on every node, or set cluster.id"
            )
        if self._config.quorum_servers:
            raise Refusal(
                "the data directory is empty and controller.quorum.bootstrap.servers names a fleet to join: "
                "run `ottla format --cluster-id ID` with the fleet's id, or set cluster.id"
            )
        return uuid_text(system.new_uuid())

    @property
    def directory_id(self) -> uuid.UUID:
        """Of the directory with the metadata log: together with the node id it makes a member of the quorum."""
        online = self.directories.online
        folder = self._config.metadata_log_dir.rstrip("/")
        meta = next((one for one in online if one.path == folder), online[0]).meta
        assert meta is not None
        return meta.directory_id
