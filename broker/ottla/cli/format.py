"""`ottla format` and `ottla random-uuid`: give a data directory to a fleet."""

import secrets
from collections.abc import Sequence
from typing import Annotated

import typer

from ottla.cli.scram_argument import scram_record
from ottla.cli.serve import pairs
from ottla.config import BrokerConfig
from ottla.config.loading import load
from ottla.config.rules import ClusterId
from ottla.errors import Refusal
from ottla.ids import uuid_from_text, uuid_text
from ottla.metadata.decisions.features import SECURITY_VERSION
from ottla.metadata.model.records import Record, encode_batch, feature_record
from ottla.ports import Disk
from ottla.raft.bootstrap import write_bootstrap
from ottla.storage.directories.meta import LOCK, DirectoryMeta, read_meta, refuse_foreign, write_meta
from ottla.system import System

__all__ = ["HELP", "format_data", "format_directories", "random_uuid"]

HELP = """\
Give empty data directories to a fleet: write meta.properties and print the cluster id.

Nodes of one fleet need the same cluster id. A fleet of one formats itself on its first start.
With --add-scram the fleet's metadata begins with a user who can log in: give it to every node with a vote.

\b
examples:
  ottla format --data-dir /var/lib/ottla
  ottla format --config server.properties --cluster-id $(ottla random-uuid)
  ottla format --data-dir /var/lib/ottla --add-scram 'SCRAM-SHA-512=[name=admin,password=secret]'
"""

HARMLESS = {"lost+found", LOCK}  # of a fresh file system; of a broker that refused to start before `ottla format`


def random_uuid() -> None:
    print(uuid_text(System().new_uuid()))


def format_directories(
    data_dir: Annotated[str | None, typer.Option(metavar="DIR", help="The directory; else log.dirs.")] = None,
    cluster_id: Annotated[str | None, typer.Option(metavar="ID", help="The fleet's id; else a new one.")] = None,
    config: Annotated[str | None, typer.Option(metavar="FILE", help="A server.properties.")] = None,
    settings: Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting.")] = None,
    ignore_formatted: Annotated[
        bool, typer.Option("--ignore-formatted", help="Leave directories of this fleet alone.")
    ] = False,
    add_scram: Annotated[
        list[str] | None,
        typer.Option(metavar="MECHANISM=[name=…,password=…]", help="A first user, as for Kafka's storage tool."),
    ] = None,
) -> None:
    configured = load(config, pairs(settings or []), data_dir)
    print(format_data(configured, cluster_id, add_scram=add_scram or (), ignore_formatted=ignore_formatted))


def format_data(
    config: BrokerConfig,
    cluster_id: str | None = None,
    *,
    add_scram: Sequence[str] = (),
    ignore_formatted: bool = True,
) -> str:
    """The cluster's id. `add_scram` are first users in the words of Kafka's storage tool."""
    users = [scram_record(each, random_bytes=secrets.token_bytes) for each in add_scram]
    try:
        return _format(System(), config, cluster_id, users, ignore_formatted=ignore_formatted)
    except OSError as error:
        raise Refusal(f"cannot format {error.filename}: {error.strerror}") from None


def _format(
    system: System,
    config: BrokerConfig,
    cluster_id: str | None,
    users: Sequence[Record],
    *,
    ignore_formatted: bool,
) -> str:
    """Checks every directory before it writes to the first."""
    wanted = _same_id(cluster_id, config.cluster_id)
    found = {folder: _inspect(system.disk, folder) for folder in config.log_dirs}
    formatted = {folder: meta for folder, meta in found.items() if meta is not None}
    if formatted and not ignore_formatted:
        folder, meta = next(iter(formatted.items()))
        raise Refusal(f"data directory {folder} is already formatted for cluster {meta.cluster_id} (meta.properties)")
    if wanted is None:
        wanted = next((meta.cluster_id for meta in formatted.values()), uuid_text(system.new_uuid()))
    for folder, meta in formatted.items():
        refuse_foreign(meta, folder=folder, cluster_id=wanted, node_id=config.node_id)
    fresh = [folder for folder in config.log_dirs if folder not in formatted]
    if users and fresh and config.metadata_log_dir not in formatted:  # before a directory counts as formatted
        first = feature_record(name=SECURITY_VERSION, level=1)
        write_bootstrap(system.disk, config.metadata_log_dir, encode_batch([first, *users]))
    for folder in fresh:
        system.disk.make_folder(folder)
        meta = DirectoryMeta(cluster_id=wanted, node_id=config.node_id, directory_id=system.new_uuid())
        write_meta(system.disk, folder, meta)
    return wanted


def _same_id(asked: str | None, configured: str | None) -> str | None:
    if asked and configured and asked != configured:
        raise Refusal(f"--cluster-id {asked} differs from cluster.id={configured} of the configuration")
    wanted = asked or configured
    if wanted is not None:
        try:
            uuid_from_text(wanted)
        except ValueError:
            raise Refusal(ClusterId.refusal(wanted)) from None
    return wanted


def _inspect(disk: Disk, folder: str) -> DirectoryMeta | None:
    if not disk.exists(folder):
        return None
    meta = read_meta(disk, folder)
    names = [name for name in disk.names(folder) if name not in HARMLESS]
    if meta is None and names:
        raise Refusal(f"data directory {folder} is not empty ({names[0]}, …) and has no meta.properties; use another")
    return meta
