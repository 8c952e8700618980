"""Authorizers that Ottla does not have are refused. Pure."""

from collections.abc import Mapping
from typing import Any

from ottla.errors import Refusal

__all__ = ["refuse_authorizer"]


def refuse_authorizer(values: Mapping[str, Any], origins: Mapping[str, str]) -> None:
    """Nobody may believe that something is forbidden when it is not."""
    if authorizer := values["authorizer.class.name"]:
        raise Refusal(
            f"{origins['authorizer.class.name']}: authorizer.class.name={authorizer}: Ottla has no authorizer yet, and "
            "everybody who reaches it may do everything. Leave it empty, on a network that you trust"
        )
