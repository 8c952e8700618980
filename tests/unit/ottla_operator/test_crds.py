"""The schema that models become."""

from typing import Annotated, Any, ClassVar, Literal

import pytest
import yaml
from msgspec import Meta
from ottla_operator.resources.catalog import KINDS
from ottla_operator.resources.model import FreeForm, Model, Quantity, Rule, Rules, keyed_by
from ottla_operator.resources.schema import crd_manifest, schema_of

from scripts.generate_crds import FOLDERS, ROOT, texts


class Part(Model, frozen=True, kw_only=True):
    """A part.

    Not shown."""

    RULES: ClassVar[Rules] = (Rule("self.size > 0", "size must be positive"),)

    name: Annotated[str, Meta(description="Its name.", max_length=5)]
    size: Annotated[int, Meta(description="Its size.", ge=1)] = 3
    kind: Annotated[Literal["a", "b"], Meta(description="Its kind.")] = "a"
    amount: Annotated[Quantity, Meta(description="How much.")] | None = None
    rest: Annotated[FreeForm, Meta(description="Passed on.")] | None = None


class Whole(Model, frozen=True, kw_only=True):
    """A whole."""

    first_parts: Annotated[tuple[Part, ...], keyed_by("name"), Meta(description="Parts.", max_length=2)] = ()
    main: Annotated[Part, Meta(description="The main part.")] = Part(name="x")


def test_a_schema():
    part = schema_of(Part)
    assert part["description"] == "A part." and part["required"] == ["name"]
    assert part["x-kubernetes-validations"] == [{"rule": "self.size > 0", "message": "size must be positive"}]
    assert part["properties"]["size"] == {
        "type": "integer", "format": "int64", "minimum": 1, "description": "Its size.", "default": 3,
    }  # fmt: skip
    assert part["properties"]["kind"]["enum"] == ["a", "b"]
    assert part["properties"]["amount"] == {"x-kubernetes-int-or-string": True, "description": "How much."}
    assert part["properties"]["rest"]["x-kubernetes-preserve-unknown-fields"] is True
    whole = schema_of(Whole)["properties"]
    assert whole["firstParts"]["x-kubernetes-list-map-keys"] == ["name"] and "default" not in whole["firstParts"]
    assert whole["main"]["default"] == {"name": "x"}


def _fields(schema: dict[str, Any], path: str = ""):
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from _fields(field, f"{path}.{name}")
        if "items" in field:
            yield from _fields(field["items"], f"{path}.{name}[]")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.CRD.kind)
def test_kubectl_explain_has_something_to_say(kind):
    assert not [path for path, field in _fields(schema_of(kind)) if not field.get("description")]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.CRD.kind)
def test_every_kind_has_conditions_and_says_whether_it_is_ready(kind):
    version = crd_manifest(kind)["spec"]["versions"][0]
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    assert {"conditions", "observedGeneration"} <= set(status)
    assert any('type=="Ready"' in column["jsonPath"] for column in version["additionalPrinterColumns"])


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_files_are_up_to_date(folder):
    assert {path.name: path.read_text() for path in (ROOT / folder).glob("*.yaml")} == texts()


def test_the_examples_are_of_these_kinds():
    kinds = {kind.CRD.kind: kind for kind in KINDS}
    for path in (ROOT / "examples").glob("*.yaml"):
        for body in yaml.safe_load_all(path.read_text()):
            if body["apiVersion"].startswith("ottla.dev/"):
                kinds[body["kind"]].parse(body)
