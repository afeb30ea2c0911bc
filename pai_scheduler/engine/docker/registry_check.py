"""From which registries images may come: no job has the daemon ask whatever is on its own machine.

The daemon reaches more than a user does: what listens on loopback, the metadata address of a cloud, other
tasks. A name that leads elsewhere when the daemon looks it up cannot be known here; against that an
administrator lists the registries.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address
from urllib.parse import urlsplit

from pai_scheduler.cluster.definition import Registries
from pai_scheduler.i18n import Message, msg

from .image_names import DOCKER_HUB, names_registry, registry_of

Address = IPv4Address | IPv6Address

#: How long (seconds) an answer holds, and how many are remembered.
_REMEMBERED_SECONDS, _REMEMBERED = 10.0, 1000
#: Names that are looked up at once, in threads of their own: users choose them.
_LOOKUPS = 4
#: Addresses that nobody has (RFC 5737, RFC 3849).
_NOBODYS = {4: "192.0.2.1", 6: "2001:db8::1"}


class RegistryCheck:
    """Knows which registries jobs' images may come from.

    `inner`: networks of the daemon's machine; `docker_host`: as in DOCKER_HOST.
    """

    def __init__(self, registries: Registries, inner: Iterable[IPv4Network], docker_host: str) -> None:
        self._registries, self._inner = registries, tuple(inner)
        self._docker_name = urlsplit(docker_host).hostname
        self._threads = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="registry-names")
        #: by registry: whether it is an inner one, and until when (loop time) that holds
        self._known: dict[str, tuple[bool, float]] = {}

    def close(self) -> None:
        """Look up nothing more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def needs_image_here(self, image: str) -> bool:
        """Return whether an image may be used only if it is on the machine: nobody is asked for it."""
        return not names_registry(image) and not self._registries.public and not self._lists(image)

    async def refusal(self, image: str, seconds: float) -> Message | None:
        """Return why the registry of an image may not be asked; None where it may.

        A name that is not found within `seconds` counts as one that may.
        """
        registry = registry_of(image)
        if self._lists(image):
            return None
        if not self._registries.public:
            return msg(
                "Images may come from {allowed} only, not from {registry}. An administrator can list it "
                "under registries in the cluster file.",
                allowed=", ".join(self._registries.patterns) or "–",
                registry=registry,
            )
        if registry == DOCKER_HUB or not await self._is_inner(registry, seconds):
            return None
        return msg(
            "No image may come from {registry}: that is no public registry, but an address of this machine "
            "or of a network around it. An administrator can list it under registries in the cluster file.",
            registry=registry,
        )

    def _lists(self, image: str) -> bool:
        return self._registries.lists(registry_of(image))

    async def _is_inner(self, registry: str, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        inner, until = self._known.get(registry, (False, 0.0))
        if loop.time() < until:
            return inner
        try:
            async with asyncio.timeout(seconds):
                inner = await loop.run_in_executor(
                    self._threads, self._leads_inside, registry.partition(":")[0]
                )
        except (TimeoutError, OSError, UnicodeError):  # (no name that could be looked up)
            return False
        if len(self._known) >= _REMEMBERED:
            self._known.clear()
        self._known[registry] = (inner, loop.time() + _REMEMBERED_SECONDS)
        return inner

    def _leads_inside(self, host: str) -> bool:
        """Return whether a host is this machine or around it; OSError where its name leads nowhere."""
        try:
            written = ip_address(host)
        except ValueError:
            pass
        else:
            # people have names for registries in their own networks; a number is not public
            if not written.is_global:
                return True
        # (what is no number to us may be one to the system: 127.1)
        found = set(_look_up(host))
        if self._docker_name and found & set(_look_up(self._docker_name)):
            return True
        return any(self._is_inside(address) for address in found)

    def _is_inside(self, address: Address) -> bool:
        return (
            address.is_loopback
            or address.is_link_local
            or address.is_unspecified
            or address.is_multicast
            or any(address in network for network in self._inner)
            or _is_own(address)
        )


def _look_up(host: str) -> Iterable[Address]:
    for _, _, _, _, place in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
        address = ip_address(str(place[0]).partition("%")[0])
        yield (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


def _is_own(address: Address) -> bool:
    """Return whether this machine has an address: only then can a socket of its own have it."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    if not _binds(family, _NOBODYS[address.version]):
        return _binds(family, str(address))
    # (it may bind to any address: net.ipv4.ip_nonlocal_bind) what is sent to oneself comes from oneself
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((str(address), 9))
        except OSError:
            return False
        return str(probe.getsockname()[0]) == str(address)


def _binds(family: socket.AddressFamily, address: str) -> bool:
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True
