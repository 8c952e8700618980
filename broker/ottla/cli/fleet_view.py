"""A fleet's state as a table for people, from what the controller says and from the processes here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from ottla.pb import control_pb2 as pb

__all__ = ["ProcessState", "render", "summary"]

STYLES = {"running": "green", "starting": "yellow", "fenced": "yellow", "stopping": "yellow"}


@dataclass(frozen=True, slots=True)
class ProcessState:
    """A broker of the local plan: no pid while it is dead."""

    id: int
    rack: str
    address: str
    pid: int | None
    restarts: int


def render(
    fleet: "pb.DescribeFleetReply | None",
    processes: Sequence[ProcessState] = (),
    restartable: Mapping[int, str] | None = None,
) -> Group:
    """`fleet` is None while no controller answers; `restartable` says by broker whether it may restart."""
    table = Table(title=_title(fleet), title_justify="left", box=None, header_style="bold", pad_edge=False)
    for heading in ("broker", "rack", "address", "state", "leads", "holds"):
        right = heading in ("broker", "leads", "holds")
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    if processes:
        table.add_column("pid", justify="right", no_wrap=True)
        table.add_column("died", justify="right", no_wrap=True)
    if restartable is not None:
        table.add_column("may restart")
    nodes = {node.id: node for node in fleet.nodes} if fleet else {}
    here = {process.id: process for process in processes}
    for broker in sorted({*nodes, *here}):
        row = _row(broker, nodes.get(broker), here.get(broker))
        if restartable is not None:
            row.append(Text(restartable.get(broker, "")))
        table.add_row(*row)
    return Group(table, Text(summary(fleet)))


def summary(fleet: "pb.DescribeFleetReply | None") -> str:
    """One line about all partitions."""
    if fleet is None:
        return "waiting for the fleet to elect a controller"
    ill = {
        "offline": fleet.partitions_offline,
        "under min ISR": fleet.partitions_under_min_isr,
        "under-replicated": fleet.partitions_under_replicated,
        "reassigning": fleet.partitions_reassigning,
    }
    worries = ", ".join(f"{count} {what}" for what, count in ill.items() if count)
    return f"{fleet.topics} topics, {fleet.partitions} partitions: {worries or 'all in sync'}"


def _title(fleet: "pb.DescribeFleetReply | None") -> str:
    return f"fleet {fleet.cluster_id}, controller {fleet.leader}" if fleet else "fleet"


def _row(broker: int, node: "pb.Node | None", process: ProcessState | None) -> list[Text]:
    state = _state(node, process)
    drained = ", drained" if node and node.replicas and not node.partitions_led and state == "running" else ""
    controls = ", controller" if node and node.leads_quorum else ""
    addresses = [f"{place.host}:{place.port}" for place in node.listeners] if node else []
    texts = [
        Text(str(broker)),
        Text(node.rack if node else process.rack if process else ""),
        Text(", ".join(addresses) or (process.address if process else "")),
        Text(state, style=STYLES.get(state, "red")).append(drained + controls),
        Text(str(node.partitions_led) if node else ""),
        Text(str(node.replicas) if node else ""),
    ]
    if process:
        texts += [Text(str(process.pid or "")), Text(str(process.restarts or ""))]
    return texts


def _state(node: "pb.Node | None", process: ProcessState | None) -> str:
    if process and process.pid is None:
        return "dead"
    if node is None or (process and "broker" not in node.roles):
        return "starting"  # it may vote before it is registered
    if node.in_controlled_shutdown:
        return "stopping"
    return "fenced" if node.fenced else "running"
