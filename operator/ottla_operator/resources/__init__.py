"""Typed models of the custom resources; the one source of `crds/*.yaml`. Pure.

How a model becomes a schema (`resources/schema.py`; `make crds` writes the files):

    class Driver(Model, frozen=True, kw_only=True):
        \"\"\"The first paragraph of the docstring is the description that `kubectl explain` shows.\"\"\"

        RULES: ClassVar[Rules] = (Rule("self.cores <= self.coresMax", "driver.cores must not exceed coresMax"),)

        service_account: Annotated[str, Meta(description="Runs as this one.", max_length=253)] = "spark"
        cores: Annotated[int, Meta(description="CPU cores.", ge=1, le=64)] = 1
        kind: Annotated[Literal["Python", "Java"], Meta(description="Of the program.")] = "Python"
        memory: Annotated[str, Meta(description="Such as 1g.", pattern="^[0-9]+[kmg]$")]

- `class Driver(Model, kw_only=True)`: models do not change, and required fields may follow optional ones.
- A field `service_account` is `serviceAccount` in Kubernetes. Every field has a description.
- No default: required. `Annotated[X, Meta(...)] | None = None`: optional, absent. Any other default: written into
  the object by the API server; `msgspec.field(default_factory=dict)` for maps. A nested model
  with all fields defaulted is declared `Annotated[Driver, Meta(...)] = Driver()`.
- Lists are tuples (`tuple[str, ...] = ()`): models are frozen.
- Bounds: `ge`, `le`, `min_length`, `max_length`, `pattern` of `Meta`. Give lists, maps and texts a `max_length` where a
  rule reads them: the API server refuses rules whose cost it cannot bound. `Literal` is an enum.
- `Quantity` is a Kubernetes quantity (a number or a text); `FreeForm` a part that is passed on as it is.
- `Meta(extra_json_schema={...})` adds anything else, such as `{"x-kubernetes-list-type": "map", …}` (see `keyed_by`).
- A list whose items have names: `Annotated[tuple[Pool, ...], keyed_by("name"), Meta(...)]`; names are then unique,
  and rules of the items may use `oldSelf`.
- Rules (CEL) are refusals in one sentence; a rule that uses `oldSelf` holds for changes only.
- A kind is a `Resource` with `CRD: ClassVar[Crd]` (plural, short names, columns), `spec` and `status`, added to
  `resources/catalog.py`. Its status inherits `Status` (conditions, observedGeneration).
- `Kind.parse(body)` makes a typed object from a dict: the last line that sees one. It does not check rules,
  and ignores fields it does not know, so that older operators read newer objects.
"""
