"""What decides reaches no clock, chance, disk or network, however it is written; no new package is forgotten."""

import ast

import pytest

from scripts import purity

CORE = "broker/ottla/raft/core/deciding.py"
STORE = "broker/ottla/storage/log/log.py"
PORTS = {"broker/ottla/ids.py": '"""Ids. Pure."""', "broker/ottla/system.py": '"""The real clock."""\nimport time'}
LIBRARY = ("asyncio", "concurrent.futures", "contextlib", "datetime", "grpc", "http.client", "io", "logging")
LIBRARY += ("multiprocessing", "os", "pathlib", "random", "sched", "secrets", "selectors", "shutil", "signal")
LIBRARY += ("socket", "sqlite3", "subprocess", "tempfile", "threading", "urllib.request")

DEVIOUS = [
    "import time",
    "import time as re",
    "import os.path",
    "from datetime import datetime",
    "def later():\n    import random",
    "if TYPE_CHECKING:\n    import socket",
    "try:\n    import secrets\nexcept ImportError:\n    pass",
    "__import__('time').time()",
    "load = __import__",
    "__builtins__['__import__']('time')",
    "import builtins",
    "import importlib\nimportlib.import_module('time')",
    "from importlib import import_module",
    "eval('1')",
    "exec('import time')",
    "open('/etc/hosts')",
    "read = open",
    "from pathlib import Path\nPath('/etc/hosts').open()",
    "from concurrent.futures import ThreadPoolExecutor",
    "from uuid import uuid4",
    "import uuid\nuuid.uuid4()",
    "import uuid as ids\nids.uuid1()",
    "import uuid\nmodule = uuid\nmodule.uuid4()",
    "import uuid\ngetattr(uuid, 'uuid4')()",
    "import sys\nsys.modules['time'].time()",
    "import dataclasses\ndataclasses.sys.modules",
    "import dataclasses as d\nd.sys",
    "from dataclasses import sys",
    "import collections.abc\ncollections.abc.sys",
    "import dataclasses\nvars(dataclasses)['sys']",
    "import dataclasses\ndataclasses.__dict__['sys']",
    "import dataclasses\ndataclasses.dataclass.__globals__['sys']",
    "from json import *",
    "from . import deciding",
    "from ottla import system",
    "from ottla.system import time",
    "from ottla.ids import time",
    "import ottla.system",
    "import ottla\nottla.system",
    *(f"import {name}" for name in LIBRARY),
]


def complaints(path: str, text: str) -> list[str]:
    return [one.text for one in purity.complaints({**PORTS, path: text}) if one.path == path]


@pytest.mark.parametrize("text", DEVIOUS)
def test_a_pure_module_cannot(text: str) -> None:
    assert complaints(CORE, text)


@pytest.mark.parametrize(
    "text",
    [
        "import re\npattern = re.compile('a')",
        "import uuid\nNOBODY = uuid.UUID(int=0)",
        "from collections.abc import Sequence",
        "import sys\nLITTLE = sys.byteorder == 'little'",
        "from ottla.ids import uuid_text",
        "from ottla import ids",
        "from ottla.pb import metadata_pb2 as pb",
        "def decide(time, random):\n    return time.at, random.choice()",
    ],
)
def test_a_pure_module_may(text: str) -> None:
    assert not complaints(CORE, text)


@pytest.mark.parametrize(
    "path",
    [
        "broker/ottla/wire/new.py",
        "broker/ottla/newpart/core/new.py",
        "broker/ottla/group/newkind/__init__.py",
        "broker/ottla/metadata/newpure/new.py",
        "broker/ottla/config/table/new.py",
        "operator/ottla_operator/plans/new.py",
        "operator/ottla_operator/manifests/new.py",
        "operator/ottla_operator/resources/deeper/new.py",
    ],
)
def test_a_new_package_is_covered_by_its_path(path: str) -> None:
    assert complaints(path, "import time") == ["imports time"]


@pytest.mark.parametrize(
    "path", ["broker/ottla/group/coordinator.py", "broker/ottla/net/tls.py", "operator/ottla_operator/kube/api.py"]
)
def test_what_acts_may_have_a_clock(path: str) -> None:
    assert not complaints(path, '"""Connections."""\nimport time')


def test_who_says_pure_is_held_to_it() -> None:
    headers, said = "broker/ottla/net/headers.py", '"""Headers. Pure."""\n'
    assert complaints(headers, f"{said}import time") == ["imports time"]
    acting = "imports ottla.system.Clock, which is not pure"
    assert complaints(headers, f"{said}from ottla.system import Clock") == [acting]
    assert not complaints(headers, '"""Headers.\n\ncore    Pure.\n"""\nimport time')


def test_the_folder_above_a_pure_one_runs_with_it() -> None:
    found = purity.complaints({"broker/ottla/raft/__init__.py": "import time", CORE: ""})
    assert [str(one) for one in found] == ["broker/ottla/raft/__init__.py:1: imports time"]


@pytest.mark.parametrize("path", [STORE, "broker/ottla/replica/a.py", "broker/ottla/metadata/runtime/a.py"])
@pytest.mark.parametrize(
    "text",
    [
        "import os, random, socket, subprocess, threading, time",
        *(f"import {name}" for name in ("os", "random", "socket", "subprocess", "time", "secrets", "sqlite3")),
        "import threading\nthreading.Thread()",
        "from threading import Thread",
        "import asyncio\nasyncio.to_thread(print)",
        "import asyncio\nasyncio.open_connection()",
        "import asyncio\nasyncio.create_subprocess_exec()",
        "import asyncio\nasyncio.get_running_loop().run_in_executor(None, None)",
        "from uuid import uuid4",
        "open('/etc/hosts')",
        "__import__('time')",
        "from ottla.system import time",
    ],
)
def test_storage_replication_metadata_and_quorum_cannot(path: str, text: str) -> None:
    assert complaints(path, text)


def test_they_may_lock_wait_and_log() -> None:
    text = "import asyncio, logging, threading\nfrom threading import Lock\nfrom ottla.system import Threads\n"
    assert not complaints(STORE, text + "lock = threading.Lock()\nlog = logging.getLogger('a')\nasyncio.sleep(1)")


def test_a_place_holds_for_one_module_and_one_name() -> None:
    recompress = "broker/ottla/storage/workers/recompress.py"
    assert not complaints(recompress, "import time\ntime.process_time()")
    assert complaints(recompress, "import time\ntime.time()") == ["uses time.time"]
    assert complaints("broker/ottla/storage/workers/other.py", "import time")


def test_a_place_that_is_no_longer_needed_is_told() -> None:
    assert {one.path for one in purity.unused_places({})} == set(purity.PLACES)


def test_the_page_names_every_place() -> None:
    architecture = (purity.ROOT / "ARCHITECTURE.md").read_text()
    assert all(f"`{path.rsplit('/', 1)[1]}`" in architecture for path in purity.PLACES)


def test_every_pure_package_says_so() -> None:
    """For whoever opens its folder."""
    sources = purity.read_sources(purity.ROOT)
    folders = [path for path in sources if purity.is_pure(path) and path.endswith("/__init__.py")]
    assert len(folders) > 15
    assert [path for path in folders if "pure" not in str(ast.get_docstring(ast.parse(sources[path]))).lower()] == []
