"""Keeps a network set up on all machines of a Swarm, by a service whose containers only sleep in it.

To set it up is most of what Docker does until a machine's first container runs in such a network.
"""

from __future__ import annotations

import logging

import aiodocker

from pai_scheduler.engine.docker.connection import DockerApi
from pai_scheduler.engine.docker.container import LABEL_SWARM
from pai_scheduler.engine.docker.runtime import FOLDER

_log = logging.getLogger(__name__)

_SLEEP = [f"{FOLDER}/libexec/busybox", "sleep", "2147483647"]
_NOBODY = "65534:65534"


class NetworkHolders:
    """The services that hold networks. `image`: the runtime's, which every machine has."""

    def __init__(self, api: DockerApi, instance: str, image: str) -> None:
        self._api, self._instance, self._image = api, instance, image

    async def hold(self, network: str) -> None:
        """Have a network set up on every machine, soon. It is no harm where this fails."""
        task = {
            "ContainerSpec": {
                "Image": self._image,
                "Command": _SLEEP,
                "User": _NOBODY,
                "ReadOnly": True,
                "CapabilityDrop": ["ALL"],
                "Init": False,
                "StopSignal": "SIGKILL",
                "Labels": {LABEL_SWARM: self._instance},
            },
            "LogDriver": {"Name": "none"},
            "RestartPolicy": {"Condition": "any"},
        }
        try:
            await self._api.persist(
                lambda: self._api.docker.services.create(
                    task,
                    name=network,
                    labels={LABEL_SWARM: self._instance},
                    mode={"Global": {}},
                    networks=[{"Target": network}],
                    endpoint_spec={"Mode": "dnsrr"},
                )
            )
        except aiodocker.DockerError as error:
            _log.warning("the network %s is not set up in advance: %s", network, error.message)

    async def let_go(self, network: str) -> None:
        """Hold a network no more; one that is not held is no error."""
        try:
            await self._api.persist(lambda: self._api.docker.services.delete(network))
        except aiodocker.DockerError as error:
            if error.status != 404:
                _log.warning("the network %s is held still: %s", network, error.message)

    async def let_go_all(self) -> None:
        """Hold no network any more, not even those of a scheduler that was killed."""
        filters = {"label": f"{LABEL_SWARM}={self._instance}"}
        for service in await self._api.persist(lambda: self._api.docker.services.list(filters=filters)):
            await self.let_go(str(service["Spec"]["Name"]))
