"""The one table of settings under Kafka's names, and everything that is derived from it.

    table/          the declarations, a file per subject; `setting` and `rules` are their types, `words` their texts
    values          parses and renders typed values; `durations` and `people` for reading and printing them
    check           whether a value is allowed, in Kafka's sentences
    layers          which of several values applies: topic, broker, fleet, file, default
    broker          the settings of one node, typed; `addresses`, `endpoints`: its listeners and voters
    group           settings of a group
    describe        DescribeConfigs
    loading         reads server.properties (`properties`, `providers`: its format and ${…} references)
    plaintext       refuses settings that ask for security which does not exist yet
    differences, retired    what differs from Kafka 4.1, and settings that Kafka has removed
    document        writes CONFIG.md; `effects` checks that settings have the effect they declare

A setting is declared once; values, checks, DescribeConfigs, CONFIG.md and the command line come from there. Pure,
except `loading`, `document` and `effects`, which use files.
"""

from ottla.config.broker import BrokerConfig, configure
from ottla.config.check import check_broker_setting, check_topic_setting
from ottla.config.describe import ConfigEntry, Source, Synonym, describe_broker, describe_defaults, describe_topic
from ottla.config.endpoints import Endpoint, Voter
from ottla.config.group import check_group_setting, describe_group
from ottla.config.layers import effective_broker, effective_topic, without_effect
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
    "without_effect",
]
