"""Models → the structural schema that a CustomResourceDefinition carries. Pure."""

from typing import Any, cast

import msgspec
from msgspec import inspect

from ottla_operator.resources.model import GROUP, VERSION, Column, Model, Resource, Rules

__all__ = ["crd_manifest", "schema_of"]

Schema = dict[str, Any]
INT_OR_STRING: Schema = {"x-kubernetes-int-or-string": True}
ANYTHING: Schema = {"x-kubernetes-preserve-unknown-fields": True}
RESOURCE_FIELDS = ("metadata",)  # the API server knows these itself


def crd_manifest(resource: type[Resource]) -> Schema:
    crd = resource.CRD
    names = {
        "kind": crd.kind,
        "listKind": f"{crd.kind}List",
        "plural": crd.plural,
        "singular": crd.kind.lower(),
        "shortNames": list(crd.short_names),
        "categories": ["ottla"],
    }
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in crd.columns],
        "schema": {"openAPIV3Schema": schema_of(resource)},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{crd.plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _column(column: Column) -> Schema:
    shown: Schema = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.description:
        shown["description"] = column.description
    return shown | ({"priority": column.priority} if column.priority else {})


def schema_of(model: type[Model]) -> Schema:
    return _schema(inspect.type_info(model))


def _schema(kind: inspect.Type) -> Schema:
    match kind:
        case inspect.Metadata():
            return _schema(kind.type) | (kind.extra_json_schema or {})
        case inspect.StructType():
            return _object(kind)
        case inspect.ListType() | inspect.VarTupleType():
            return {"type": "array", "items": _schema(kind.item_type)} | _bounds(kind, "Items")
        case inspect.DictType():
            return _map(kind)
        case inspect.UnionType():
            return _union(kind)
        case inspect.LiteralType():
            return {"type": "string", "enum": list(kind.values)}
        case inspect.StrType():
            return {"type": "string"} | _bounds(kind, "Length") | ({"pattern": kind.pattern} if kind.pattern else {})
        case inspect.IntType():
            return {"type": "integer", "format": "int64"} | _range(kind)
        case inspect.FloatType():
            return {"type": "number"} | _range(kind)
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.AnyType():
            return dict(ANYTHING)
    raise TypeError(f"{kind} has no form in a structural schema")


def _object(kind: inspect.StructType) -> Schema:
    model = cast(type[Model], kind.cls)
    fields = [field for field in kind.fields if not (issubclass(model, Resource) and field.name in RESOURCE_FIELDS)]
    shown: Schema = {"type": "object", "description": _first_paragraph(model)}
    shown["properties"] = {field.encode_name: _field(field) for field in fields}
    if required := [field.encode_name for field in fields if field.required]:
        shown["required"] = required
    return shown | _rules(model.RULES)


def _field(field: inspect.Field) -> Schema:
    shown = _schema(field.type)
    default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
    if default is msgspec.NODEFAULT or default is None or default in ([], ()):
        return shown
    plain = msgspec.to_builtins(default)  # without defaults: those of nested models fill them
    if plain == {} and "properties" not in shown:
        return shown
    return shown | {"default": list(plain) if isinstance(plain, tuple) else plain}


def _map(kind: inspect.DictType) -> Schema:
    if isinstance(kind.value_type, inspect.AnyType):
        return {"type": "object"} | ANYTHING
    return {"type": "object", "additionalProperties": _schema(kind.value_type)} | _bounds(kind, "Properties")


def _union(kind: inspect.UnionType) -> Schema:
    types = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
    if len(types) == 1:
        return _schema(types[0])
    if {type(one) for one in types} == {inspect.IntType, inspect.StrType}:
        return dict(INT_OR_STRING)
    raise TypeError(f"{kind}: a structural schema knows one type, or int and str together")


def _bounds(kind: Any, what: str) -> Schema:
    low = {} if kind.min_length is None else {f"min{what}": kind.min_length}
    return low | ({} if kind.max_length is None else {f"max{what}": kind.max_length})


def _range(kind: inspect.IntType | inspect.FloatType) -> Schema:
    low = {} if kind.ge is None else {"minimum": kind.ge}
    return low | ({} if kind.le is None else {"maximum": kind.le})


def _rules(rules: Rules) -> Schema:
    if not rules:
        return {}
    return {"x-kubernetes-validations": [{"rule": rule.expression, "message": rule.message} for rule in rules]}


def _first_paragraph(model: type[Model]) -> str:
    return " ".join((model.__doc__ or "").split("\n\n")[0].split())
