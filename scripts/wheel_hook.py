"""Wheels hold the compiled modules where a C compiler is there, and say for which Python and platform they are."""

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledModules(BuildHookInterface):  # type: ignore[type-arg]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # `make env` compiles
        top = Path(self.root)
        subprocess.run([sys.executable, top / "scripts" / "compile_modules.py"], check=True)
        package = top / "broker" / "ottla"
        compiled = runpy.run_path(str(package / "compiled.py"))
        for module in compiled["MODULES"]:
            folder = Path(compiled["binary_folder"](module, str(package)))
            if folder.is_dir():
                build_data["pure_python"] = False
                build_data["infer_tag"] = True
                build_data["force_include"][str(folder)] = str(Path("ottla") / folder.relative_to(package))
