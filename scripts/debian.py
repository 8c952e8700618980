"""Debian's packages, installed as root where a program lacks them; elsewhere the caller says what to install."""

import os
import shutil
import subprocess

INSTALL = ("apt-get", "install", "-y", "-q", "--no-install-recommends")
UPDATE = ("apt-get", "update", "-q")
TIMEOUT_S = 600.0
SHOWN_LINES_MAX = 15


class NotInstalled(RuntimeError):
    """The command and the end of its output."""


def can_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(*packages: str) -> None:
    """A fresh image has no package lists yet, and those of an old one name versions that are gone: then once again."""
    if _run(*INSTALL, *packages).returncode == 0:
        return
    for command in (UPDATE, (*INSTALL, *packages)):
        done = _run(*command)
        if done.returncode != 0:
            said = "\n".join((done.stdout + done.stderr).splitlines()[-SHOWN_LINES_MAX:])
            raise NotInstalled(f"{' '.join(command)}\n{said}")


def _run(*command: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S)
