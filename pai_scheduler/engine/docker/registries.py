"""Names of images, the registries that they may come from, and logins to them."""

from __future__ import annotations

import asyncio
import os
import re
import socket
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pai_scheduler.cluster.definition import Registries
from pai_scheduler.engine.protocol import RegistryLogin
from pai_scheduler.i18n import Message, msg

# Names of images as Docker reads them, who may pull them, and which of this machine's came with a login.
#
# Facts: the reference grammar of github.com/distribution/reference.

DOCKER_HUB = "docker.io"
_ALSO_DOCKER_HUB = ("index.docker.io", "registry-1.docker.io", "registry.hub.docker.com", "hub.docker.com")


def registry_name(written: str) -> str:
    """Return a registry's name as images have it: no scheme, no path, Docker Hub always by the same name."""
    host = re.sub(r"^[a-z]+://", "", written.strip().lower()).partition("/")[0]
    return DOCKER_HUB if host in _ALSO_DOCKER_HUB else host


def names_registry(image: str) -> bool:
    """Return whether an image's name begins with a registry's; a name with capitals is no repository's."""
    first, slash, _ = image.partition("/")
    return bool(slash) and ("." in first or ":" in first or first == "localhost" or first != first.lower())


def qualified(image: str) -> str:
    """Write an image's name out, with its registry: `ubuntu:22.04` is `docker.io/library/ubuntu:22.04`."""
    first, slash, rest = image.partition("/")
    if names_registry(image):
        return f"{registry_name(first)}/{rest}"
    return f"{DOCKER_HUB}/{image}" if slash else f"{DOCKER_HUB}/library/{image}"


def registry_of(image: str) -> str:
    """Return the registry that an image comes from."""
    return qualified(image).partition("/")[0]


def repository_of(image: str) -> str:
    """Return an image's name, with its registry, without tag and digest."""
    registry, _, rest = qualified(image).partition("/")
    return f"{registry}/{rest.partition('@')[0].partition(':')[0]}"


def repositories(found: dict[str, Any]) -> set[str]:
    """Return all names (without tags) of an image that Docker describes."""
    names = [*(found.get("RepoTags") or ()), *(found.get("RepoDigests") or ())]
    return {repository_of(name) for name in names if not name.startswith("<none>")}


def login_for(image: str, login: RegistryLogin | None) -> RegistryLogin | None:
    """Return the login where it is for the registry of this image: nobody else is told a password."""
    if login is None or registry_name(login.registry) != registry_of(image):
        return None
    return login


class PrivateImages:
    """Remembers, in a file, which repositories and images of this machine were pulled with a login."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: set[str] | None = None

    def add(self, repository_or_id: str) -> None:
        """Remember one, durably."""
        known = self._load()
        if repository_or_id in known:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with open(self._file, "a", encoding="utf-8") as file:
            file.write(f"{repository_or_id}\n")
            file.flush()
            os.fsync(file.fileno())
        known.add(repository_or_id)

    def __contains__(self, repository_or_id: object) -> bool:
        return repository_or_id in self._load()

    def _load(self) -> set[str]:
        if self._known is None:
            try:
                self._known = set(self._file.read_text(encoding="utf-8").splitlines())
            except FileNotFoundError:
                self._known = set()
        return self._known


# From which registries images may come: no job has the daemon ask whatever is on its own machine.
#
# The daemon reaches more than a user does: what listens on loopback, the metadata address of a cloud, other
# tasks. A name that leads elsewhere when the daemon looks it up cannot be known here; against that an
# administrator lists the registries.

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
