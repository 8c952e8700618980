"""Certificates of a fleet, as `ottla pki` makes them."""

import datetime
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ottla.rpc.credentials import CredentialFiles
from ottla.security import pki

CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
OTHER_CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAA"


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


class Files(NamedTuple):
    ca: Path
    certificate: Path
    key: Path
    keystore: Path

    def in_broker(self) -> CredentialFiles:
        return CredentialFiles(str(self.keystore), str(self.ca))


class Authority:
    """A CA in a folder of its own."""

    def __init__(self, folder: Path, cluster_id: str = CLUSTER_ID) -> None:
        self.folder = folder
        self.ca = Path(pki.create_authority(str(folder), cluster_id=cluster_id, now=now()))

    def issue(
        self,
        role: str,
        name: str,
        *,
        days: float = 10,
        at: datetime.datetime | None = None,
        hosts: Sequence[str] = ("127.0.0.1", "localhost"),
    ) -> Files:
        """A new one each time; `at`: issued then, such as long ago; `hosts`: of a node."""
        hosts = hosts if role in ("broker", "controller") else []
        stem = name if role == "person" else f"{role}-{name}"
        for old in self.folder.glob(f"{stem}.*"):
            old.unlink()
        made = pki.issue(str(self.folder), role=role, name=name, hosts=hosts, days=int(days), now=at or now())
        return Files(self.ca, Path(made.certificate), Path(made.key), Path(made.keystore))


def put(source: Path, target: Path) -> None:
    """In one step, as whoever rotates certificates should."""
    draft = target.with_suffix(".new")
    shutil.copyfile(source, draft)
    draft.replace(target)
