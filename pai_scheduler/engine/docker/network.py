"""A network for every gang on one machine, with addresses known before, and walls between them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from ipaddress import IPv4Address, IPv4Network, ip_network
from typing import Any

import aiodocker

from pai_scheduler.engine.protocol import EngineError, Gang
from pai_scheduler.i18n import msg
from pai_scheduler.job.task import TaskRef

from .client import DaemonUnreachableError, DockerApi
from .containers import LABEL_INSTANCE, network_name
from .network_pool import SpareNetworks
from .runtime import BUSYBOX

# Walls between jobs' networks on their machine that stand also while Docker rearranges its own.
#
# Docker keeps bridges apart by a jump from the chain FORWARD to rules of its own, and DOCKER-USER is
# reached by another one. Whenever it makes a network it removes both jumps and puts them back
# (`EnsureJumpRule` in libnetwork, Docker 20.10): for some milliseconds every container reaches every other
# one. The rules here are in the table `mangle`, which Docker leaves alone. The scheduler may have no rights
# over the machine's packet filter, but Docker has: a container in the machine's own network, from the
# runtime's image, runs the machine's iptables.

#: How the bridge of a gang's network is called begins so; Linux allows 15 characters.
BRIDGE_PREFIX = "pai-"

#: What goes from one bridge to another is dropped, also to Docker's default one; not what stays within one.
_RULES = (
    f"-i {BRIDGE_PREFIX}+ -o {BRIDGE_PREFIX}+ -m physdev ! --physdev-is-bridged -j DROP",
    f"-i {BRIDGE_PREFIX}+ -o docker0 -j DROP",
)
_SCRIPT = "set -e\n" + "\n".join(
    f"iptables -w -t mangle -C FORWARD {rule} 2>/dev/null || iptables -w -t mangle -I FORWARD {rule}"
    for rule in _RULES
)
_MACHINE = "/machine"

_log = logging.getLogger(__name__)


def bridge_name() -> str:
    """Return a name for the bridge of a new network, to which the rules apply."""
    return BRIDGE_PREFIX + secrets.token_hex(5)


async def build_walls(api: DockerApi, image: str, instance: str) -> bool:
    """Add the rules to the packet filter of Docker's machine, unless they are there; say in the log if not.

    `image`: the runtime's, on this daemon. Returns whether they are there now.
    """
    name = f"pai-walls-{instance}"
    try:
        await api.remove(name)  # what a killed service left
        container = await api.persist(lambda: api.docker.containers.create(_config(image), name=name))
        try:
            await api.persist(container.start)
            ended = await api.persist(container.wait)
            said = "".join(await api.persist(lambda: container.log(stdout=True, stderr=True, tail=3)))
        finally:
            await api.remove(name)
    except (DaemonUnreachableError, aiodocker.DockerError) as error:
        _complain(str(error))
        return False
    if ended["StatusCode"]:
        _complain(" ".join(said.split()) or f"exit code {ended['StatusCode']}")
        return False
    return True


def _complain(why: str) -> None:
    _log.warning(
        "jobs' networks are kept apart by Docker alone, which opens them for milliseconds whenever a network"
        " is made; `sudo sh hub_config/egress.sh` on Docker's machine closes that: %s",
        why,
    )


def _config(image: str) -> dict[str, Any]:
    return {
        "Image": image,
        "Entrypoint": [BUSYBOX, "chroot", _MACHINE, "/bin/sh", "-c", _SCRIPT],
        "Cmd": [],
        "Env": ["PATH=/usr/sbin:/sbin:/usr/bin:/bin"],
        "HostConfig": {
            "NetworkMode": "host",
            "UsernsMode": "host",
            "Binds": [f"/:{_MACHINE}:ro"],
            # for the lock of iptables
            "Tmpfs": {f"{_MACHINE}/run": "size=1m"},
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "CapAdd": ["NET_ADMIN", "NET_RAW", "SYS_CHROOT"],
            "SecurityOpt": ["no-new-privileges"],
            "LogConfig": {"Type": "json-file"},
        },
    }


# A network of its own for every gang on one machine, with addresses that are known before anything starts.
#
# Docker's own address pool holds some thirty networks, so the blocks are cut here, from a pool that an
# administrator may choose. A block that Docker refuses (taken by something else) is passed over.


#: Of each block the network's, the gateway's and the broadcast address are nobody's.
RESERVED = 3
#: The smallest block holds 8 addresses.
_LONGEST_PREFIX = 29
#: One for small gangs has more than these need, so that the next one gets other addresses; where the pool has
#: room for a thousand of them.
_MOST_SPARE, _SPARE_IN_POOL = 64, 1024
#: How long an end waits for Docker to remove what nobody has; what is left the next start removes.
_CLOSE_SECONDS = 5.0
_BUSY_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)


#: On it a machine reaches the containers of networks that span several machines.
_GATEWAY_BRIDGE = "docker_gwbridge"


#: Docker's option for the name of a bridge
_BRIDGE_NAME = "com.docker.network.bridge.name"


class _NoFreeBlockError(EngineError):
    """The pool has no block of a size that is nobody's."""


class GangNetworks:
    """Makes and removes the networks of gangs.

    `spares`: those that nobody has, for small gangs; they are given up where a gang finds no other room.
    """

    #: Docker's word for how far such a network reaches, and the label that says whose it is
    scope, label = "local", LABEL_INSTANCE

    def __init__(self, api: DockerApi, instance: str, pool: str, *, spares: SpareNetworks) -> None:
        self._api, self._instance, self._spares = api, instance, spares
        self._pool = IPv4Network(pool)
        self._next = int(self._pool.network_address)
        self._making = asyncio.Lock()
        #: gangs that may have a network of their own name; None: nobody has said yet which gangs there are
        self._may_have_own: set[str] | None = None
        #: networks for small gangs of which it was seen that they are as this service makes them
        self._as_made: set[str] = set()

    async def begin(self, gangs: Collection[str]) -> None:
        """Make networks in advance from now on; there are these gangs, and no others."""
        self._may_have_own = set(gangs)
        await self._spares.forget_all_but(gangs)
        self._spares.fill(self.make_spare)

    async def close(self) -> None:
        """Remove the networks that nobody has, where Docker answers."""
        with contextlib.suppress(EngineError, aiodocker.DockerError, OSError, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await asyncio.gather(*map(self.remove_network, await self._spares.close()))

    def name(self, job_id: str, attempt: int) -> str:
        """Return the name that a gang's network has in Docker."""
        return self._spares.docker_name(network_name(job_id, attempt))

    async def make(self, gang: Gang) -> dict[TaskRef, str]:
        """Make a gang's network, unless it is there; give each member's address, the same every time."""
        name = network_name(gang.job_id, gang.attempt)
        async with self._making:
            known = self._spares.docker_name(name)
            block = _block(await self._only(known)) if self._may_be_there(name, known) else None
            if block is None:
                await self._spares.forget(name)  # whoever removes unused networks has removed it
                if self.fits_spare(gang):
                    block = await self._take_spare(name, len(gang.members))
            if block is None:
                self._expect_own(name)
                block = await self._create_in_any_case(name, self.size(gang))
        first = self.first_address(block, gang, self._spares.offset(name))
        return {member.task: str(first + n) for n, member in enumerate(gang.members)}

    def _may_be_there(self, gang: str, docker_name: str) -> bool:
        """Return whether a gang may have a network already: of most it is known that they have none.

        Where each small gang gets one of those for all, only large ones have one of their own name, and those
        of which it could not be written down what they have.
        """
        if self._may_have_own is None or not self._spares.keeps:
            return True
        return docker_name != gang or gang in self._may_have_own

    def _expect_own(self, gang: str) -> None:
        if self._may_have_own is not None:
            self._may_have_own.add(gang)

    def _expect_none(self, gang: str) -> None:
        if self._may_have_own is not None:
            self._may_have_own.discard(gang)

    async def remove(self, name: str) -> None:
        """Take a gang's network from it, to be removed or kept for another; none of that name is no error."""
        docker_name = self._spares.docker_name(name)
        if self._spares.may_keep(docker_name) and await self._is_like_new(docker_name):
            await self._spares.keep(name, docker_name)
            self._expect_none(name)
            return
        await self.remove_network(docker_name)
        await self._spares.forget(name)
        self._expect_none(name)

    async def remove_network(self, name: str) -> None:
        """Remove a network by Docker's name; none of that name is no error.

        Docker 20.10 sometimes counts a container of it for ever that is gone: then it stays until Docker is
        started anew, after which all is removed that nobody has.
        """
        self._as_made.discard(name)
        for pause in (*_BUSY_PAUSES, None):
            try:
                for network in await self._named(name):
                    await self._delete(network)
                return
            except aiodocker.DockerError as error:
                if error.status == 403 and pause is None and await self._is_left_to_docker(name):
                    _log.warning("Docker keeps network %s, in which nothing is: %s", name, error.message)
                    return
                if error.status != 403 or pause is None:
                    reason = error.message
                    raise EngineError(
                        msg("Docker could not remove the network {name}: {error}", name=name, error=reason)
                    ) from error
                await asyncio.sleep(pause)  # a container of it is just being removed

    async def _is_left_to_docker(self, name: str) -> bool:
        # (of one that spans several machines only those here are listed)
        return self.scope == "local" and not await self._api.containers_in(name)

    async def names(self) -> list[str]:
        """List the gangs whose networks this scheduler has made."""
        label = f"{self.label}={self._instance}"
        networks = await self._api.persist(lambda: self._api.docker.networks.list(filters={"label": label}))
        names = [network["Name"] for network in networks if network["Scope"] == self.scope]
        return [gang for name in names if (gang := self._spares.gang_name(name)) is not None]

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

    async def host_address(self, found: Mapping[str, Any]) -> str:
        """Return where this machine reaches a container of a gang's network; empty: nowhere."""
        bridge = await self.show(_GATEWAY_BRIDGE)
        here = ((bridge or {}).get("Containers") or {}).get(str(found["Id"])) or {}
        if here.get("IPv4Address"):
            return str(here["IPv4Address"]).partition("/")[0]
        return str(own_network(found).get("IPAddress") or "")

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
        return [network for network in networks if network["Name"] == name and network["Scope"] == self.scope]

    async def _delete(self, network: dict[str, Any]) -> None:
        try:
            await self._api.persist(lambda: self._api.network(network["Id"]).delete())
        except aiodocker.DockerError as error:
            # (a Swarm's manager lists one that is gone until its own containers have left it)
            if error.status != 404 and not error.message.endswith("not found"):
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

    # ── what is otherwise where networks span several machines

    def size(self, gang: Gang) -> int:
        """Return how many addresses a gang needs."""
        return len(gang.members) + RESERVED

    def fits_spare(self, gang: Gang) -> bool:
        """Return whether one that is made in advance has enough addresses for a gang."""
        return self.size(gang) <= self.spare_size

    @property
    def spare_size(self) -> int:
        """Return how many addresses one for small gangs has."""
        return max(1 << (32 - _LONGEST_PREFIX), min(_MOST_SPARE, self._pool.num_addresses // _SPARE_IN_POOL))

    def first_address(self, block: IPv4Network, gang: Gang, offset: int) -> IPv4Address:  # noqa: ARG002
        """Return the first of the addresses of a gang's tasks; `offset` of the network's come before it."""
        return block.network_address + 2 + offset

    def driver(self) -> dict[str, Any]:
        """Say to Docker's API which kind of network it is."""
        return {"Driver": "bridge", "Options": {_BRIDGE_NAME: bridge_name()}}

    def is_walled(self, network: Mapping[str, Any]) -> bool:
        """Return whether a network has a wall around it (those that earlier versions made have none)."""
        name = str((network.get("Options") or {}).get(_BRIDGE_NAME, ""))
        return name.startswith(BRIDGE_PREFIX)

    async def make_spare(self, name: str) -> None:
        """Make a network in advance."""
        async with self._making:
            await self._create(name, self.spare_size)
            self._as_made.add(name)
            # in the same turn: until it is set up it cannot be given up for a gang that finds no other room
            await self.set_up_spare(name)

    async def set_up_spare(self, name: str) -> None:
        """Do what can be done before a gang comes."""

    def spare_given(self, name: str) -> None:
        """Hear that a gang has got a network that was made in advance."""

    # ── making

    async def _take_spare(self, name: str, tasks: int) -> IPv4Network | None:
        """Give a small gang a network of those that nobody has; None: it shall have one of its own name."""
        while (spare := self._spares.draw()) is not None:
            if (block := _block(await self._only(spare))) is not None:
                if await self._give(name, spare, tasks):
                    self.spare_given(spare)
                    return block
                return None
            self._drop(spare)
        if not self._spares.keeps:
            return None
        # one that can be kept for another gang when this one has ended
        spare = self._spares.new()
        try:
            block = await self._create_in_any_case(spare, self.spare_size)
        except BaseException:
            # (made all the same, it is removed as what nobody knows)
            self._spares.drop(spare)
            raise
        self._as_made.add(spare)
        return block if await self._give(name, spare, tasks) else None

    def _drop(self, spare: str) -> None:
        """Forget a network that is there no more."""
        self._as_made.discard(spare)
        self._spares.drop(spare)

    async def _give(self, name: str, spare: str, tasks: int) -> bool:
        """Write down that a gang has a network; where that fails, remove it and say no."""
        try:
            await self._spares.give(name, spare, tasks, self.spare_size - RESERVED)
        except OSError as error:
            # a full disk: a network of the gang's own name has to be noted nowhere
            _log.warning("it cannot be kept who has the network %s: %s", spare, error)
            await self.remove_network(spare)
            self._spares.drop(spare)
            return False
        return True

    async def _is_like_new(self, docker_name: str) -> bool:
        """Return whether another gang can have this network: it is as large, and no container is in it."""
        if docker_name not in self._as_made:
            found = await self._only(docker_name)
            block = _block(found)
            if block is None or not self.is_walled(found or {}):
                return False
            if block.num_addresses != self.spare_size or not block.subnet_of(self._pool):
                return False
            self._as_made.add(docker_name)
        # (that it is there is seen before it is given away)
        return not await self._api.containers_in(docker_name)

    async def _create_in_any_case(self, name: str, size: int) -> IPv4Network:
        """Make a network for a gang; where no block is free for it, instead of those that nobody has."""
        try:
            made = await self._create(name, size)
        except _NoFreeBlockError:
            unused = self._spares.draw_all()
            if not unused:
                raise
            for spare in unused:
                await self.remove_network(spare)
                self._spares.drop(spare)
            made = await self._create(name, size)
        return _block(await self._only(name)) or made

    async def _create(self, name: str, size: int) -> IPv4Network:
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
        raise _NoFreeBlockError(
            msg(
                "No network of {size} addresses is free in {pool}: too many jobs run at once, "
                "or the pool is too small.",
                size=2 ** (32 - prefix),
                pool=str(self._pool),
            )
        )

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
        return {
            "Name": name,
            "CheckDuplicate": True,
            **self.driver(),
            "Labels": {self.label: self._instance},
            "IPAM": {"Config": [{"Subnet": str(block), "Gateway": str(block.network_address + 1)}]},
        }


def own_network(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what Docker says of the one network that a task's container is in."""
    return next(iter(found["NetworkSettings"]["Networks"].values()), None) or {}


def _block(network: dict[str, Any] | None) -> IPv4Network | None:
    """Find the IPv4 addresses of a network in its description."""
    for config in (network or {}).get("IPAM", {}).get("Config") or []:
        subnet = ip_network(config["Subnet"])
        if isinstance(subnet, IPv4Network):
            return subnet
    return None
