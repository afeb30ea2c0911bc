"""A network of its own for every gang, with addresses that are known before anything starts.

Docker's own address pool holds some thirty networks, so the blocks are cut here, from a pool that
an administrator may choose. A block that Docker refuses (taken by something else) is passed over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from ipaddress import IPv4Network, ip_network
from typing import Any

import aiodocker

from pai_scheduler.engine.protocol import EngineError, Gang
from pai_scheduler.job.messages import msg
from pai_scheduler.job.task import TaskRef

from .connection import DockerApi
from .container import LABEL_INSTANCE, LABEL_SWARM, network_name

DEFAULT_POOL = "10.201.0.0/16"
#: Of each block the network's, the gateway's and the broadcast address are nobody's.
_RESERVED = 3
#: The smallest block holds 8 addresses.
_LONGEST_PREFIX = 29
_BUSY_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)


#: On it a machine reaches the containers of networks that span several machines.
_GATEWAY_BRIDGE = "docker_gwbridge"


class GangNetworks:
    """Makes and removes the networks of gangs: on one machine, or with `overlay` across those of a Swarm.

    `encrypted`: what goes from machine to machine.
    """

    def __init__(
        self,
        api: DockerApi,
        instance: str,
        pool: str = DEFAULT_POOL,
        *,
        overlay: bool = False,
        encrypted: bool = False,
    ) -> None:
        self._api, self._instance, self._overlay, self._encrypted = api, instance, overlay, encrypted
        self._pool = IPv4Network(pool)
        self._next = int(self._pool.network_address)
        self._making = asyncio.Lock()

    async def make(self, gang: Gang) -> dict[TaskRef, str]:
        """Make a gang's network, unless it is there; give each member's address, the same every time."""
        name = network_name(gang.job_id, gang.attempt)
        async with self._making:
            block = _block(await self._only(name))
            if block is None:
                made = await self._create(name, gang)
                block = _block(await self._only(name)) or made
        # (of an overlay network, Docker takes the first addresses for its machines)
        first = block.broadcast_address - len(gang.members) if self._overlay else block.network_address + 2
        return {member.task: str(first + n) for n, member in enumerate(gang.members)}

    async def remove(self, name: str) -> None:
        """Remove a network; none of that name is no error."""
        for pause in (*_BUSY_PAUSES, None):
            try:
                for network in await self._named(name):
                    await self._delete(network)
                return
            except aiodocker.DockerError as error:
                if error.status != 403 or pause is None:
                    reason = error.message
                    raise EngineError(
                        msg("Docker could not remove the network {name}: {error}", name=name, error=reason)
                    ) from error
                await asyncio.sleep(pause)  # a container of it is just being removed

    async def names(self) -> list[str]:
        """List the networks of this scheduler."""
        label = f"{self._label}={self._instance}"
        networks = await self._api.persist(lambda: self._api.docker.networks.list(filters={"label": label}))
        return [network["Name"] for network in networks if network["Scope"] == self._scope]

    async def gateway(self) -> str | None:
        """Return this host's address on Docker's default bridge, which containers of every network reach."""
        bridge = await self.show("bridge")
        configs = bridge["IPAM"].get("Config") or [] if bridge else []
        for config in configs:
            if config.get("Gateway"):
                return str(config["Gateway"])
        # Docker names it only where an administrator chose it; its own choice is the first address
        block = _block(bridge)
        return str(block.network_address + 1) if block else None

    async def host_address(self, found: Mapping[str, Any], name: str) -> str:
        """Return where this machine reaches a container of a network; empty: nowhere."""
        bridge = await self.show(_GATEWAY_BRIDGE)
        here = ((bridge or {}).get("Containers") or {}).get(str(found["Id"])) or {}
        if here.get("IPv4Address"):
            return str(here["IPv4Address"]).partition("/")[0]
        network = found["NetworkSettings"]["Networks"].get(name) or {}
        return str(network.get("IPAddress") or "")

    async def _only(self, name: str) -> dict[str, Any] | None:
        """Find the network of this name; where there are several, only one stays.

        Docker's names are not unique: what a killed service asked for may be made beside what the next one
        asks for. The one that tasks are in stays, else the oldest.
        """
        found = await self._named(name)
        if len(found) < 2:
            return found[0] if found else None
        shown = [show for network in found if (show := await self.show(network["Id"]))]
        shown.sort(key=lambda show: (not show["Containers"], show["Created"]))
        for other in shown[1:]:
            await self._delete(other)
        return shown[0] if shown else None

    async def _named(self, name: str) -> list[dict[str, Any]]:
        networks = await self._api.persist(lambda: self._api.docker.networks.list(filters={"name": name}))
        return [
            network for network in networks if network["Name"] == name and network["Scope"] == self._scope
        ]

    async def _delete(self, network: dict[str, Any]) -> None:
        try:
            await self._api.persist(lambda: self._api.network(network["Id"]).delete())
        except aiodocker.DockerError as error:
            if error.status != 404:
                raise

    async def show(self, name: str) -> dict[str, Any] | None:
        """Describe a network, by name or id; None where there is none. Waits for the daemon."""
        try:
            return await self._api.persist(lambda: self._api.network(name).show())
        except aiodocker.DockerError as error:
            if error.status == 404:
                return None
            raise EngineError(
                msg("Docker could not make a network for the job: {error}", error=error.message)
            ) from error

    async def _create(self, name: str, gang: Gang) -> IPv4Network:
        machines = len({member.node for member in gang.members}) if self._overlay else 0
        size = len(gang.members) + _RESERVED + machines
        prefix = min(_LONGEST_PREFIX, 32 - (size - 1).bit_length())
        networks = await self._api.persist(self._api.docker.networks.list)
        taken = [block for network in networks if (block := _block(network))]
        for block in self._blocks(prefix):
            if any(block.overlaps(other) for other in taken):
                continue
            config = self._config(name, block)
            try:
                await self._api.persist(partial(self._api.docker.networks.create, config))
            except aiodocker.DockerError as error:
                # made by a call whose answer was lost
                if error.status == 409 and (found := _block(await self._only(name))):
                    return found
                if "overlap" not in error.message:
                    raise EngineError(
                        msg("Docker could not make a network for the job: {error}", error=error.message)
                    ) from error
            else:
                # going round leaves an address unused for as long as possible after its task is gone
                self._next = int(block.broadcast_address) + 1
                return block
        raise EngineError(
            msg(
                "No network of {size} addresses is free in {pool}: too many jobs run at once, "
                "or the pool is too small.",
                size=2 ** (32 - prefix),
                pool=str(self._pool),
            )
        )

    @property
    def _label(self) -> str:
        return LABEL_SWARM if self._overlay else LABEL_INSTANCE

    @property
    def _scope(self) -> str:
        return "swarm" if self._overlay else "local"

    def _blocks(self, prefix: int) -> Iterator[IPv4Network]:
        """Cut the pool, beginning behind the block that was given out last."""
        if prefix < self._pool.prefixlen:
            return
        size, first = 2 ** (32 - prefix), int(self._pool.network_address)
        count = self._pool.num_addresses // size
        begin = -(-(self._next - first) // size)
        for number in range(begin, begin + count):
            yield IPv4Network((first + number % count * size, prefix))

    def _config(self, name: str, block: IPv4Network) -> dict[str, Any]:
        options = {"encrypted": ""} if self._encrypted else {}
        return {
            "Name": name,
            "CheckDuplicate": True,
            "Driver": "overlay" if self._overlay else "bridge",
            **({"Attachable": True, "Options": options} if self._overlay else {}),
            "Labels": {self._label: self._instance},
            "IPAM": {"Config": [{"Subnet": str(block), "Gateway": str(block.network_address + 1)}]},
        }


def _block(network: dict[str, Any] | None) -> IPv4Network | None:
    """Find the IPv4 addresses of a network in its description."""
    for config in (network or {}).get("IPAM", {}).get("Config") or []:
        subnet = ip_network(config["Subnet"])
        if isinstance(subnet, IPv4Network):
            return subnet
    return None
