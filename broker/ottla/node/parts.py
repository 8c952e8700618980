"""What the handlers of a broker may ask for: by the names of their parameters behind `(request, call)`."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from ottla.api.batch_verification import BatchVerification
from ottla.api.cluster_view import ClusterView
from ottla.api.controller_client import ControllerClient
from ottla.api.fetch_plan import FetchPlans
from ottla.api.fetch_sessions import FetchSessions
from ottla.api.lookups import Lookups
from ottla.api.producer_ids import ProducerIds
from ottla.api.share_results import LeaderHints
from ottla.config import BrokerConfig
from ottla.coordination.coordinator import Surroundings
from ottla.group.coordinator import GroupCoordinator
from ottla.metadata.runtime.feed import MetadataFeed
from ottla.metadata.runtime.relay import ControllerLink
from ottla.node.coordinating import Coordinators
from ottla.ports import Clock
from ottla.replica.host import ReplicaHost
from ottla.replica.settings import LiveSettings
from ottla.security.core.tokens import TokenMacs
from ottla.share.coordinator import ShareCoordinator
from ottla.share.host import ShareHost
from ottla.system import Threads
from ottla.txn.coordinator import TransactionCoordinator
from ottla.txn.marker_writer import MarkerWriter
from ottla.txn.verifying import Verifier

__all__ = ["Parts", "parts_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    node_id: int
    cluster_id: str
    config: BrokerConfig
    settings: LiveSettings
    clock: Clock
    threads: Threads
    feed: MetadataFeed
    controller: ControllerClient
    quorum: ControllerLink
    replicas: ReplicaHost
    view: ClusterView
    fetch_plans: FetchPlans
    fetch_sessions: FetchSessions
    lookups: Lookups
    verification: BatchVerification
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    producer_ids: ProducerIds
    verifier: Verifier
    markers: MarkerWriter
    shares: ShareHost
    share_states: ShareCoordinator
    leader_hints: LeaderHints
    tokens: TokenMacs

    def by_name(self) -> Mapping[str, object]:
        return {each.name: getattr(self, each.name) for each in fields(self)}


def parts_of(around: Surroundings, coordinators: Coordinators, quorum: ControllerLink, *, cluster_id: str) -> Parts:
    """Made once, when the coordinators are there."""
    config, system, node_id = around.config, around.system, around.config.node_id
    sessions_max: int = config["max.incremental.fetch.session.cache.slots"]
    return Parts(
        node_id=node_id,
        cluster_id=cluster_id,
        config=config,
        settings=around.settings,
        clock=system.clock,
        threads=system.threads,
        feed=around.feed,
        controller=ControllerClient(around.controller, around.replicas),
        quorum=quorum,
        replicas=around.replicas,
        view=ClusterView(cluster_id, controller_id=node_id),
        fetch_plans=FetchPlans(around.replicas, config),
        fetch_sessions=FetchSessions(sessions_max=sessions_max, random=system.random),
        lookups=Lookups(system.threads),
        verification=BatchVerification(coordinators.verifier, around.settings, system.clock),
        groups=coordinators.groups,
        transactions=coordinators.transactions,
        producer_ids=coordinators.producer_ids,
        verifier=coordinators.verifier,
        markers=coordinators.markers,
        shares=coordinators.shares,
        share_states=coordinators.share_states,
        leader_hints=LeaderHints(around.replicas, around.feed),
        tokens=TokenMacs(config["delegation.token.secret.key"], lambda: around.feed.image.delegation_tokens),
    )
