"""Both brokers by name, behind one interface."""

from support.genuine import GenuineKafka
from support.ottla_broker import OttlaBroker
from support.process import BrokerProcess

PEERS: dict[str, type[BrokerProcess]] = {"ottla": OttlaBroker, "kafka": GenuineKafka}
