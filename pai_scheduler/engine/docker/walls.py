"""Walls between jobs' networks on their machine that stand also while Docker rearranges its own.

Docker keeps bridges apart by a jump from the chain FORWARD to rules of its own, and DOCKER-USER is reached by
another one. Whenever it makes a network it removes both jumps and puts them back (`EnsureJumpRule` in
libnetwork, Docker 20.10): for some milliseconds every container reaches every other one. The rules here are
in the table `mangle`, which Docker leaves alone. The scheduler may have no rights over the machine's packet
filter, but Docker has: a container in the machine's own network, from the runtime's image, runs the machine's
iptables.
"""

from __future__ import annotations

import logging
import secrets
from typing import Any

import aiodocker

from .connection import DaemonUnreachableError, DockerApi
from .runtime import BUSYBOX

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
