"""Both twins of a module that mypyc compiles: its source interpreted, and its binary, for tests that run over both."""

import importlib
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import ottla
import pytest
from ottla import compiled

PACKAGE = Path(next(iter(ottla.__path__)))
KINDS = ("interpreted", "compiled")


def twin(module: str, kind: str) -> ModuleType:
    """Skips the test where no binary fits the source: no C compiler, or `make env` did not run since it changed."""
    assert module in compiled.MODULES, f"{module} is not compiled at all"
    if kind == "interpreted":
        return _interpreted(module)
    found = importlib.import_module(module)
    if not compiled.is_compiled(found):
        pytest.skip(f"{module} has no binary of its source here")
    return found


def _interpreted(module: str) -> ModuleType:
    name = f"{module}_interpreted"
    if name not in sys.modules:
        spec = spec_from_file_location(name, PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py"))
        assert spec is not None and spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]
