"""The configuration a broker starts with: typed values, addresses and directories from given texts. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from ottla.config.addresses import addresses
from ottla.config.authorizers import check_authorizer, warn_of_authorizer
from ottla.config.check import broker_setting_of, check_broker_setting
from ottla.config.endpoints import Endpoint, Voter
from ottla.config.listeners import refuse_false_security, unused_security
from ottla.config.retired import why_retired
from ottla.config.table import BROKER
from ottla.config.values import out_of_range, parse, render
from ottla.errors import Refusal

__all__ = ["BrokerConfig", "configure"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BrokerConfig:
    """`config["log.retention.hours"]` is the typed value, given or default. Compared and hashed by identity."""

    explicit: Mapping[str, str]  # what was given, as text
    sources: Mapping[str, str]  # where each of them was given, for messages
    values: Mapping[str, Any]
    warnings: tuple[str, ...]
    listeners: tuple[Endpoint, ...]  # for clients
    advertised: tuple[Endpoint, ...]  # what Metadata answers; port 0 stands for the port that was bound
    controller_listeners: tuple[Endpoint, ...]
    host: str  # where other nodes reach this one, unless `voters` says it
    voters: tuple[Voter, ...]
    quorum_servers: tuple[str, ...]  # host:port of other nodes that know the voters, where no setting names them
    log_dirs: tuple[str, ...]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def __repr__(self) -> str:  # values may be secrets
        return f"BrokerConfig(node {self.node_id}, {', '.join(map(str, self.listeners))}, {', '.join(self.log_dirs)})"

    @property
    def node_id(self) -> int:
        return int(self.values["node.id"])

    @property
    def cluster_id(self) -> str | None:
        return self.values["cluster.id"] or None

    @property
    def rack(self) -> str | None:
        return self.values["broker.rack"] or None

    @property
    def roles(self) -> tuple[str, ...]:
        roles: tuple[str, ...] = self.values["process.roles"]
        return roles

    @property
    def metadata_log_dir(self) -> str:
        return self.values["metadata.log.dir"] or self.log_dirs[0]

    @property
    def without_effect(self) -> tuple[str, ...]:
        """Given settings that nothing in Ottla uses."""
        return tuple(sorted(name for name in self.explicit if name in BROKER and BROKER[name].effect == "none"))


def configure(given: Mapping[str, str], sources: Mapping[str, str], *, hostname: str = "localhost") -> BrokerConfig:
    """`sources` says where each setting was given; `hostname` is advertised for a listener on every address."""
    texts, origins = dict(given), dict(sources)
    _same_node_id(texts, origins)
    warnings = tuple(filter(None, (_warning(name, origins[name]) for name in texts)))
    values = {setting.name: setting.default for setting in BROKER.values()}
    for name, text in texts.items():
        if setting := broker_setting_of(name):
            _refuse_if(check_broker_setting(name, text, dynamic=False), name, text, origins[name])
            values[name] = parse(setting, text)
    _fit_together(values)
    check_authorizer(values, origins)
    places = addresses(texts, origins, values, hostname=hostname)
    refuse_false_security(places.listeners, places.controller_listeners, values)
    return BrokerConfig(
        explicit=MappingProxyType(texts),
        sources=MappingProxyType(origins),
        values=MappingProxyType(values),
        warnings=(
            *warnings,
            *_warn_of_unused_servers(values, origins),
            *unused_security(places.listeners, origins),
            *warn_of_authorizer(values, origins),
        ),
        log_dirs=_log_dirs(values),
        listeners=places.listeners,
        advertised=places.advertised,
        controller_listeners=places.controller_listeners,
        host=places.host,
        voters=places.voters,
        quorum_servers=places.quorum_servers,
    )


def _same_node_id(texts: dict[str, str], origins: dict[str, str]) -> None:
    """node.id and its older name broker.id stand for each other."""
    for name, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
        if name in texts and other not in texts:
            texts[other], origins[other] = texts[name], origins[name]
    if "node.id" in texts and texts["node.id"].strip() != texts["broker.id"].strip():
        raise Refusal(
            f"{origins['broker.id']}: broker.id={texts['broker.id']} differs from node.id={texts['node.id']}; "
            "give one of them only"
        )


def _warning(name: str, origin: str) -> str | None:
    if broker_setting_of(name) or name.startswith(("rsm.config.", "rlmm.config.")):
        return None
    if reason := why_retired(name):
        return f"{origin}: {name} is ignored: {reason}"
    from difflib import get_close_matches  # rarely needed, and not free to import

    nearest = get_close_matches(name, BROKER, n=1)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    return f"{origin}: unknown setting {name} is ignored{hint}"


def _warn_of_unused_servers(values: Mapping[str, Any], origins: Mapping[str, str]) -> Iterator[str]:
    name = "controller.quorum.bootstrap.servers"
    if values[name] and values["controller.quorum.voters"]:
        yield f"{origins[name]}: {name} is ignored: controller.quorum.voters names the voters"


def _refuse_if(problem: str | None, name: str, text: str, origin: str) -> None:
    setting = broker_setting_of(name)
    if problem is None or setting is None:
        return
    shown = "…" if setting.sensitive else text.strip()
    reason = problem.split(f" for configuration {setting.name}: ")[-1].removeprefix("requirement failed: ")
    if reason.startswith("Not a number"):
        example = f", such as the default {default}" if (default := render(setting.default)) else ""
        reason = out_of_range(setting, text) or f"expected a number ({setting.type.name.lower()}){example}"
    raise Refusal(f"{origin}: {name}={shown}: {reason}")


def _fit_together(values: Mapping[str, Any]) -> None:
    """Rules between settings, as Kafka's broker checks them on start."""
    if values["replica.fetch.wait.max.ms"] > values["replica.socket.timeout.ms"]:
        raise Refusal("replica.fetch.wait.max.ms must not be more than replica.socket.timeout.ms")
    if values["replica.fetch.wait.max.ms"] > values["replica.lag.time.max.ms"]:
        raise Refusal("replica.fetch.wait.max.ms must not be more than replica.lag.time.max.ms")
    if 0 < values["queued.max.request.bytes"] < values["socket.request.max.bytes"]:
        raise Refusal("queued.max.request.bytes must not be less than socket.request.max.bytes")
    if values["max.connections.per.ip"] == 0 and not values["max.connections.per.ip.overrides"]:
        raise Refusal(
            "max.connections.per.ip=0 shuts all clients out; name exceptions in max.connections.per.ip.overrides"
        )
    if not values["process.roles"]:
        raise Refusal("process.roles is empty; allowed are broker, controller or both")


def _log_dirs(values: Mapping[str, Any]) -> tuple[str, ...]:
    text = values["log.dir"] if values["log.dirs"] is None else values["log.dirs"]
    folders = tuple(part.strip() for part in text.split(",") if part.strip())
    if not folders:
        raise Refusal("log.dirs is empty; give at least one directory (or --data-dir)")
    if len(set(folders)) < len(folders):
        raise Refusal(f"log.dirs={text} names a directory twice")
    return folders
