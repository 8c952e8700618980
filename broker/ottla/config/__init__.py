"""The one table of settings under Kafka's names, and everything that is derived from it.

Pure, except `loading`, which reads a file, and `document`, which writes CONFIG.md. A setting is declared once, in
`table/`; values, checks, DescribeConfigs, CONFIG.md and the command line all come from there.
"""

from ottla.config.broker import BrokerConfig, configure
from ottla.config.check import check_broker_setting, check_topic_setting
from ottla.config.describe import ConfigEntry, Source, Synonym, describe_broker, describe_defaults, describe_topic
from ottla.config.endpoints import Endpoint, Voter
from ottla.config.group import check_group_setting, describe_group
from ottla.config.layers import effective_broker, effective_topic
from ottla.config.setting import Importance, Mode, Setting, Type
from ottla.config.table import BROKER, TOPIC
from ottla.config.values import BadValue, parse, render

__all__ = [
    "BROKER",
    "TOPIC",
    "BadValue",
    "BrokerConfig",
    "ConfigEntry",
    "Endpoint",
    "Importance",
    "Mode",
    "Setting",
    "Source",
    "Synonym",
    "Type",
    "Voter",
    "check_broker_setting",
    "check_group_setting",
    "check_topic_setting",
    "configure",
    "describe_broker",
    "describe_defaults",
    "describe_group",
    "describe_topic",
    "effective_broker",
    "effective_topic",
    "parse",
    "render",
]
