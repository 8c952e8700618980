"""Hot pure modules that mypyc compiles: which ones, and how `import` finds their binaries.

`scripts/compile_modules.py` (part of `make env`, of the images and of wheels) puts a module's binary into a folder that
is named by the hash of the module's source. The finder below takes only the binary of the source that is there, so
after a checkout, an edit or a sabotage the source is interpreted until it is compiled again. Without a C compiler
everything is interpreted. OTTLA_INTERPRETED=1 ignores binaries.

Rules for a module in the list: it is pure and typed, it imports no constants of modules that are not in the list
(mypyc copies `Final` values into the binary), and its tests run over both twins (tests/support/twins.py).
"""

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import source_hash, spec_from_file_location
from types import ModuleType

__all__ = ["FOLDER", "MODULES", "binary_folder", "install", "is_compiled"]

MODULES = ("ottla.wire.framing",)
FOLDER = "_compiled"  # inside the package
SWITCH = "OTTLA_INTERPRETED"
LIBRARY = "__mypyc"  # what mypyc appends to a module's name for the library behind it


def binary_folder(module: str, package_folder: str) -> str:
    """Where the binary of the module's source, as it is now, belongs. OSError when there is no source."""
    path = os.path.join(package_folder, *module.split(".")[1:]) + ".py"
    with open(path, "rb") as source:
        digest = source_hash(source.read()).hex()
    return os.path.join(package_folder, FOLDER, f"{module}-{digest}")


def is_compiled(module: ModuleType) -> bool:
    return isinstance(module.__loader__, ExtensionFileLoader)


class Finder(MetaPathFinder):
    """Finds binaries of the listed modules of one package folder, and leaves everything else to the other finders."""

    def __init__(self, package_folder: str) -> None:
        self._package_folder = package_folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        module = fullname.removesuffix(LIBRARY)
        if module not in MODULES:
            return None
        try:
            folder = binary_folder(module, self._package_folder)
        except OSError:
            return None
        file = os.path.join(folder, fullname.rpartition(".")[2] + EXTENSION_SUFFIXES[0])
        if not os.path.exists(file):
            return None
        return spec_from_file_location(fullname, file, loader=ExtensionFileLoader(fullname, file))


def install() -> None:
    if not os.environ.get(SWITCH):
        sys.meta_path.insert(0, Finder(os.path.dirname(os.path.abspath(__file__))))
