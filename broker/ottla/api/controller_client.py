"""A client of the controller for commands that this broker has to apply too."""

from typing import TypeVar

from ottla.metadata.decisions.commands import Command
from ottla.metadata.runtime.active import Controller
from ottla.replica.host import ReplicaHost

__all__ = ["ControllerClient"]

Reply = TypeVar("Reply")


class ControllerClient:
    def __init__(self, controller: Controller, replicas: ReplicaHost) -> None:
        self._controller = controller
        self._replicas = replicas

    async def submit(self, command: Command[Reply]) -> Reply:
        """The reply, once this broker has applied the change. KafkaError if it was refused."""
        reply = await self._controller.submit(command)
        await self._replicas.settled()
        return reply
