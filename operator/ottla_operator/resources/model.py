"""What models of custom resources are made of. Pure. The conventions are in the package's docstring."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Self

import msgspec
from msgspec import Meta

__all__ = [
    "Column", "Condition", "Crd", "FreeForm", "Metadata", "Model", "Quantity", "Resource", "Rule", "Rules", "Status",
    "is_same", "keyed_by",
]  # fmt: skip

GROUP, VERSION = "ottla.dev", "v1alpha1"

Quantity = int | str
FreeForm = dict[str, Any]


class Rule(msgspec.Struct, frozen=True):
    """A CEL expression that must hold, and the sentence with which the API server refuses what breaks it."""

    expression: str
    message: str


Rules = tuple[Rule, ...]


class Column(msgspec.Struct, frozen=True):
    """A column of `kubectl get`. Priority 1 shows it with `-o wide` only."""

    name: str
    path: str
    type: str = "string"
    description: str = ""
    priority: int = 0


class Crd(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    plural: str
    short_names: tuple[str, ...]
    columns: tuple[Column, ...]


def keyed_by(*names: str) -> Meta:
    """For a list whose items are identified by these fields."""
    return Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(names)})


class Model(msgspec.Struct, rename="camel", frozen=True, omit_defaults=True):
    RULES: ClassVar[Rules] = ()


class Metadata(Model, frozen=True, kw_only=True):
    name: str
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class Condition(Model, frozen=True, kw_only=True):
    """One aspect of the object's state, as Kubernetes' own conditions."""

    type: Annotated[str, Meta(description="What it is about, such as Ready.", max_length=63)]
    status: Annotated[str, Meta(description="True, False or Unknown.", pattern="^(True|False|Unknown)$")]
    reason: Annotated[str, Meta(description="One word for programs.", max_length=1024)]
    message: Annotated[str, Meta(description="A sentence for people.", max_length=32768)] = ""
    last_transition_time: Annotated[
        str, Meta(description="When the status last changed.", extra_json_schema={"format": "date-time"})
    ]
    observed_generation: Annotated[int, Meta(description="The generation that it was found for.", ge=0)] = 0


class Status(Model, frozen=True, kw_only=True):
    """What was last found out about the object."""

    conditions: Annotated[tuple[Condition, ...], keyed_by("type"), Meta(description="Ready first.", max_length=16)] = ()
    observed_generation: (
        Annotated[int, Meta(description="The generation of the spec that the status belongs to.")] | None
    ) = None


class Resource(Model, frozen=True, kw_only=True):
    CRD: ClassVar[Crd]

    metadata: Metadata

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Self:
        """From an object of the API server, which has checked it. ValueError when it is not one of this kind."""
        return msgspec.convert(dict(body), cls)


def is_same(known: Resource | None, other: Resource) -> bool:
    """The same object, not only the same name: news of a deleted one may come when there is another."""
    return known is not None and known.metadata.uid == other.metadata.uid
