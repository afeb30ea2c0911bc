"""A network for every gang whose tasks run on several machines of a Swarm."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import aiodocker

from pai_scheduler.engine.docker.client import DockerApi
from pai_scheduler.engine.docker.containers import LABEL_SWARM
from pai_scheduler.engine.docker.network import RESERVED, GangNetworks
from pai_scheduler.engine.docker.network_pool import SpareNetworks
from pai_scheduler.engine.docker.runtime import FOLDER
from pai_scheduler.engine.protocol import Gang

# Keeps a network set up on all machines of a Swarm, by a service whose containers only sleep in it.
#
# To set it up is most of what Docker does until a machine's first container runs in such a network.

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


# A network of its own for every gang whose tasks run on several machines of a Swarm.

#: The networks across machines; each machine cuts those of its own from another pool.
OVERLAY_POOL = "10.202.0.0/16"
#: Of a network that is made in advance each machine takes two addresses, whether the gang comes there or not.
_SPARE_SIZE, _TAKEN_BY_MACHINE = 128, 2
#: (one of a single task is on one machine)
_SMALLEST_GANG = 2
#: How long after a gang has got one it is still held on all machines: until its containers are in it.
_HOLD_SECONDS = 60.0


class OverlayNetworks(GangNetworks):
    """Makes and removes the networks of gangs across machines.

    `encrypted`: what goes from machine to machine. `holders` hold those that are made in advance. `machines`
    returns which there are, and of each whether a launch there may say which network its gang has.
    """

    scope, label = "swarm", LABEL_SWARM

    def __init__(
        self,
        api: DockerApi,
        instance: str,
        pool: str = OVERLAY_POOL,
        *,
        encrypted: bool,
        spares: SpareNetworks,
        holders: NetworkHolders,
        machines: Callable[[], Mapping[str, bool]],
    ) -> None:
        super().__init__(api, instance, pool, spares=spares)
        self._encrypted, self._holders, self._machines = encrypted, holders, machines
        self._leaving: set[asyncio.Task[None]] = set()

    async def begin(self, gangs: Collection[str]) -> None:
        """Make networks in advance from now on; there are these gangs, and no others."""
        await self._holders.let_go_all()
        await super().begin(gangs)

    async def close(self) -> None:
        """Remove the networks that nobody has, where the manager answers."""
        for leaving in self._leaving:
            leaving.cancel()
        await asyncio.gather(*self._leaving, return_exceptions=True)
        await super().close()

    def size(self, gang: Gang) -> int:
        """Return how many addresses a gang needs: each of its machines takes one."""
        return super().size(gang) + len({member.node for member in gang.members})

    def fits_spare(self, gang: Gang) -> bool:
        """Return whether one that is made in advance has enough addresses for a gang."""
        machines = self._machines()
        return all(machines.get(member.node) for member in gang.members) and self._has_room(len(gang.members))

    @property
    def spare_size(self) -> int:
        """Return how many addresses one for small gangs has."""
        return _SPARE_SIZE

    def first_address(self, block: IPv4Network, gang: Gang, offset: int) -> IPv4Address:  # noqa: ARG002
        """Return the first of the addresses of a gang's tasks; Docker takes those at the beginning itself."""
        return block.broadcast_address - len(gang.members)

    def driver(self) -> dict[str, Any]:
        """Say to Docker's API which kind of network it is."""
        options = {"encrypted": ""} if self._encrypted else {}
        return {"Driver": "overlay", "Attachable": True, "Options": options}

    def is_walled(self, network: Mapping[str, Any]) -> bool:  # noqa: ARG002
        """Return True: what is in an overlay network does not meet that in others on any bridge."""
        return True

    async def set_up_spare(self, name: str) -> None:
        """Have a network that is made in advance set up on every machine."""
        if self._has_room(_SMALLEST_GANG):
            await self._holders.hold(name)

    def spare_given(self, name: str) -> None:
        """Hear that a gang has got a network that was made in advance."""
        leaving = asyncio.create_task(self._let_go_soon(name))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)

    async def remove_network(self, name: str) -> None:
        """Remove a network by Docker's name; none of that name is no error."""
        await self._holders.let_go(name)
        await super().remove_network(name)

    def _has_room(self, tasks: int) -> bool:
        return tasks + RESERVED + _TAKEN_BY_MACHINE * len(self._machines()) <= self.spare_size

    async def _let_go_soon(self, name: str) -> None:
        await asyncio.sleep(_HOLD_SECONDS)
        await self._holders.let_go(name)
