"""Several listeners of one broker, Ottla's or Kafka's own."""

from collections.abc import Mapping

from support.genuine import GenuineKafka
from support.ports import free_port
from support.process import BrokerProcess

__all__ = ["listen"]


def listen(broker: BrokerProcess, protocols: Mapping[str, str]) -> dict[str, int]:
    """Sets them, before the first start; the port of each. `protocols` is by the listener's name; PLAINTEXT is at the
    port where the broker is waited for."""
    host = broker.host
    ports = {name: broker.port if name == "PLAINTEXT" else free_port() for name in protocols}
    listeners = [f"{name}://{host}:{port}" for name, port in ports.items()]
    broker.settings["advertised.listeners"] = ",".join(listeners)
    everyone = dict(protocols)
    if isinstance(broker, GenuineKafka):
        controller = f"{host}:{free_port()}"
        broker.settings["controller.quorum.bootstrap.servers"] = controller
        listeners.append(f"CONTROLLER://{controller}")
        everyone["CONTROLLER"] = "PLAINTEXT"
    broker.settings["listeners"] = ",".join(listeners)
    broker.settings["listener.security.protocol.map"] = ",".join(f"{name}:{each}" for name, each in everyone.items())
    return ports
