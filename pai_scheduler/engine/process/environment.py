"""Environment of a task of the process engine, beside what the job says."""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pai_scheduler.cluster.node import Gpu

#: Where processes reach the storage: an address of loopback that nothing else uses (P, A and I in ASCII).
#: Only an administrator could give it a name, in /etc/hosts.
STORAGE_ADDRESS = "127.80.65.73"
#: What of the service's own environment is no business of a task's.
_PRIVATE_PREFIXES = ("CONFIGPROXY_", "JPY_", "JUPYTERHUB_", "PAI_")
_NO_PROXY = ("no_proxy", "NO_PROXY")
_PRIVATE_WORDS = ("CREDENTIAL", "PASSWORD", "SECRET", "TOKEN")


def inherited(environment: Mapping[str, str], direct_host: str | None = None) -> dict[str, str]:
    """Take over the service's environment without its secrets; its Python comes first on the PATH.

    Where it names proxies, `direct_host` is reached without one.
    There is a HOME in any case: a service of the Hub has none, and git, pip and shells ask for it.
    """
    taken = {
        name: value
        for name, value in environment.items()
        if not name.startswith(_PRIVATE_PREFIXES) and not any(word in name.upper() for word in _PRIVATE_WORDS)
    }
    binaries = str(Path(sys.executable).parent)
    others = [folder for folder in taken.get("PATH", os.defpath).split(":") if folder != binaries]
    taken["PATH"] = ":".join([binaries, *others])
    taken["HOME"] = taken.get("HOME") or _home()
    if direct_host and any(name.lower().endswith("_proxy") for name in taken):
        for name in [name for name in _NO_PROXY if name in taken] or _NO_PROXY[:1]:
            taken[name] = ",".join(filter(None, [taken.get(name), direct_host]))
    return taken


def _home() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # an account without a name
        return "/"


def visible_gpus(gpus: Sequence[Gpu], real_ones_here: bool) -> dict[str, str]:
    """Show a task its GPUs and no others; a simulated one must not uncover the real one of its number."""
    shown = [gpu for gpu in gpus if not (gpu.simulated and real_ones_here)]
    numbers = ",".join(str(gpu.index) for gpu in shown)
    return {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": numbers,
        "NVIDIA_VISIBLE_DEVICES": numbers or "void",
    }
