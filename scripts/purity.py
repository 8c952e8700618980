"""What decides knows no clock, chance, disk or network: found in the source, by paths and not by a list of modules.

A module is pure by its path (`is_pure`) or by its own word: `Pure` in the first paragraph of its docstring. It may
import ALLOWED, and of the project only what is pure as well, so that nothing is reached indirectly. The `__init__.py`
of each folder above a pure path runs with it and is held to the same. Messages made from `proto/` are pure.

Storage, replication, metadata and the quorum act, by what `ottla.system` gives them: they may import ACTING.
"""

import ast
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SOURCES = ("broker/ottla", "operator/ottla_operator", "spark-apps/ottla_pipelines")
GENERATED = ("pb", "_compiled")

Allowed = Mapping[str, Collection[str] | None]
"""Modules that may be imported. Of one with names, only these; None: all of it."""

ALLOWED: Allowed = {
    **dict.fromkeys(("__future__", "abc", "array", "base64", "binascii", "bisect", "collections", "collections.abc")),
    **dict.fromkeys(("dataclasses", "difflib", "enum", "functools", "hashlib", "heapq", "hmac", "ipaddress")),
    **dict.fromkeys(("itertools", "json", "math", "operator", "re", "struct", "types", "typing", "weakref")),
    **dict.fromkeys(("zlib", "backports.zstd", "compression.zstd", "crc32c", "kio.schema.errors")),
    **dict.fromkeys(("lz4.frame", "msgspec", "msgspec.inspect", "mypy_extensions", "re2")),
    "cramjam": ("DecompressionError", "gzip", "lz4", "snappy", "zstd"),
    "kio.index": ("load_request_schema", "load_response_schema"),
    "sys": ("byteorder", "version_info"),
    "uuid": ("UUID",),
}
LOOP = ("CancelledError", "Condition", "Event", "Future", "IncompleteReadError", "Lock", "Semaphore", "Task")
LOOP += ("TimerHandle", "create_task", "current_task", "ensure_future", "gather", "get_running_loop", "shield")
LOOP += ("sleep", "timeout", "wait")
ACTING: Allowed = {
    **ALLOWED,
    **dict.fromkeys(("contextlib", "errno", "google.protobuf.message")),
    "asyncio": LOOP,
    "logging": ("DEBUG", "ERROR", "getLogger"),
    "threading": ("Lock",),
}
PICKLE = ("HIGHEST_PROTOCOL", "dumps", "loads")
WORKERS = "broker/ottla/storage/workers"
PLACES: Mapping[str, Mapping[str, Collection[str]]] = {
    "broker/ottla/errors.py": {"sys": ("modules",)},
    f"{WORKERS}/recompress.py": {"time": ("process_time",)},
    f"{WORKERS}/worker.py": {
        "asyncio": (*LOOP, "create_subprocess_exec", "subprocess"),
        "pickle": PICKLE,
        "sys": ("executable",),
    },
    f"{WORKERS}/worker_process.py": {
        "copyreg": ("pickle",),
        "os": ("dup", "dup2", "fdopen", "nice"),
        "pickle": PICKLE,
        "signal": ("SIGINT", "SIG_IGN", "signal"),
        "sys": ("argv", "stdin"),
    },
}
"""Modules that do more, and what. ARCHITECTURE.md names them."""

FUNCTIONS = frozenset(
    ("__builtins__", "__import__", "__loader__", "__spec__", "breakpoint", "compile", "eval", "exec", "globals")
) | {"input", "open", "print"}
ATTRIBUTES = frozenset(("__builtins__", "__dict__", "__globals__", "__loader__", "__spec__", "__subclasses__"))
ATTRIBUTES |= {"run_in_executor"}
LOOKUPS = ("getattr", "vars")

OPERATOR_PURE = ("plans", "manifests", "resources")
ACTING_PACKAGES = (("storage",), ("replica",), ("raft",), ("metadata", "runtime"))
CLAIM = re.compile(r"\bPure\b")
MESSAGES = re.compile(r"ottla\.pb\.[a-z_]+_pb2")


class Complaint(NamedTuple):
    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def is_pure(path: str) -> bool:
    """Every `core`, `wire`, the packages of `group`, those of `metadata` but `runtime`, the table of settings; of the
    operator plans, manifests and resources."""
    _, package, *folders = path.split("/")[:-1]
    if package == "ottla_operator":
        return folders[:1] != [] and folders[0] in OPERATOR_PURE
    within = folders[0] if folders else ""
    kept = within in ("group", "metadata") and len(folders) > 1 and folders[:2] != ["metadata", "runtime"]
    return "core" in folders or within == "wire" or kept or folders == ["config", "table"]


def acts(path: str) -> bool:
    """Whether it is of storage, replication, metadata or the quorum, and not pure."""
    _, package, *folders = path.split("/")[:-1]
    return package == "ottla" and any(tuple(folders[: len(one)]) == one for one in ACTING_PACKAGES)


def claims(tree: ast.Module) -> bool:
    return bool(CLAIM.search((ast.get_docstring(tree) or "").split("\n\n")[0]))


def complaints(sources: Mapping[str, str]) -> list[Complaint]:
    """Of all modules: path from the root of the project → text."""
    trees = {path: ast.parse(text) for path, text in sources.items()}
    project = {_module(path): path for path in trees}
    pure = {path for path, tree in trees.items() if is_pure(path) or claims(tree)}
    pure |= {above for path in pure if is_pure(path) for above in _above(path) if above in trees}
    found: list[Complaint] = []
    for path, tree in trees.items():
        more = PLACES.get(path, {})
        if path in pure:
            found += _Module(path, tree, {**ALLOWED, **more}, project, pure).complaints()
        elif acts(path):
            found += _Module(path, tree, {**ACTING, **more}, project, None).complaints()
    return sorted(found)


def _module(path: str) -> str:
    return ".".join(path.removesuffix(".py").removesuffix("/__init__").split("/")[1:])


def _above(path: str) -> Iterator[str]:
    """The `__init__.py` of each folder above, which an import runs as well. That of `ottla` finds compiled modules."""
    folders = path.split("/")[:-1]
    return ("/".join([*folders[:depth], "__init__.py"]) for depth in range(3, len(folders) + 1))


class _Module:
    """One module. `pure` are the paths it may import of the project; None: all."""

    def __init__(
        self,
        path: str,
        tree: ast.Module,
        allowed: Allowed,
        project: Mapping[str, str],
        pure: Collection[str] | None,
    ) -> None:
        self._packages = {module.split(".")[0] for module in project}
        self._path, self._tree, self._allowed, self._project, self._pure = path, tree, allowed, project, pure
        self._bound: dict[str, str] = {}
        """Names in this module → what was imported under them."""

    def complaints(self) -> Iterator[Complaint]:
        nodes = list(ast.walk(self._tree))
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield from (Complaint(self._path, node.lineno, text) for text in self._import(node))
        bases = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
        for node in nodes:
            text = None
            if isinstance(node, ast.Attribute):
                text = self._attribute(node)
            elif isinstance(node, ast.Name):
                text = self._name(node, is_base=id(node) in bases)
            elif isinstance(node, ast.Call):
                text = self._lookup(node)
            if text is not None:
                yield Complaint(self._path, node.lineno, text)

    def _import(self, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
        if isinstance(node, ast.Import):
            for one in node.names:
                self._bound[one.asname or one.name.split(".")[0]] = one.name if one.asname else one.name.split(".")[0]
                yield from self._refused(one.name, None)
        elif node.level or node.module is None:
            yield "a relative import"
        else:
            for one in node.names:
                self._bound[one.asname or one.name] = f"{node.module}.{one.name}"
                yield from self._refused(node.module, one.name)

    def _refused(self, module: str, name: str | None) -> Iterator[str]:
        full = f"{module}.{name}"
        if MESSAGES.fullmatch(full) or MESSAGES.fullmatch(module):
            return
        if module.split(".")[0] in self._packages:
            target = self._project.get(full) or self._project.get(module)
            if name == "*" or (name is not None and full not in self._project and _is_foreign(name, self._allowed)):
                yield f"imports {full}"
            elif self._pure is not None and target not in self._pure:
                yield f"imports {module if name is None else full}, which is not pure"
        elif name is not None and full in self._allowed:
            return
        elif module not in self._allowed:
            yield f"imports {module}"
        elif name is not None:
            names = self._allowed[module]
            if name == "*" or (name not in names if names is not None else _is_foreign(name, self._allowed)):
                yield f"imports {full}"

    def _attribute(self, node: ast.Attribute) -> str | None:
        """`uuid.uuid4`, and a module by way of another: `dataclasses.sys`."""
        if node.attr in ATTRIBUTES:
            return f"uses .{node.attr}"
        base = _root(node)
        imported = self._bound.get(base, "")
        if not imported:
            return None
        names = self._allowed.get(imported)
        if names is not None and isinstance(node.value, ast.Name):
            return None if node.attr in names else f"uses {imported}.{node.attr}"
        return f"uses {imported}…{node.attr}" if _is_foreign(node.attr, self._allowed) else None

    def _name(self, node: ast.Name, *, is_base: bool) -> str | None:
        if node.id in FUNCTIONS and isinstance(node.ctx, ast.Load):
            return f"uses {node.id}"
        if self._allowed.get(self._bound.get(node.id, "")) is not None and not is_base:
            return f"hands on the module {node.id}"
        return None

    def _lookup(self, node: ast.Call) -> str | None:
        if isinstance(node.func, ast.Name) and node.func.id in LOOKUPS and node.args:
            looked_up = self._bound.get(_root(node.args[0]), "")
            if looked_up in self._allowed:
                return f"looks up names of the module {looked_up}"
        return None


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_foreign(name: str, allowed: Mapping[str, object]) -> bool:
    """Whether it is the name of a module of Python that may not be imported here, or only in part."""
    return name in sys.stdlib_module_names and allowed.get(name, ()) is not None


def unused_places(sources: Mapping[str, str]) -> list[Complaint]:
    """A place that no longer does what PLACES allows it."""
    found = []
    for path, modules in PLACES.items():
        tree = ast.parse(sources.get(path, ""))
        imported = {one.name for node in ast.walk(tree) if isinstance(node, ast.Import) for one in node.names}
        imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        found += [
            Complaint(path, 1, f"does not import {one}, which PLACES allows") for one in modules if one not in imported
        ]
    return found


def read_sources(root: Path) -> dict[str, str]:
    paths = (path for one in SOURCES for path in (root / one).rglob("*.py"))
    relative = {path.relative_to(root).as_posix(): path for path in paths}
    return {name: path.read_text() for name, path in relative.items() if not set(name.split("/")) & set(GENERATED)}


def main() -> int:
    sources = read_sources(ROOT)
    found = [*complaints(sources), *unused_places(sources)]
    for one in found:
        print(one)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
