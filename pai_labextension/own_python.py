"""Kernels and terminals of a notebook server use the person's own packages; the server itself does not."""

from __future__ import annotations

import os
import re
import site
import sys
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_server.serverapp import ServerApp

from pai_scheduler.own_packages import OwnPackages

#: How kernelspecs name the Python that runs the notebook server: jupyter_client puts that in its place.
_SERVERS_PYTHON = re.compile(r"python(3(\.\d+)?)?")


class OwnPythonSpecs(KernelSpecManager):
    """Kernelspecs in which the Python of the server is replaced by that of the person's own packages."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """Return a kernel by its name; NoSuchKernel."""
        spec = super().get_kernel_spec(kernel_name)
        if spec.argv and runs_in_servers_python(spec.argv[0]):
            spec.argv = [str(kernel_python(self.log)), *spec.argv[1:]]
        return spec


def runs_in_servers_python(program: str) -> bool:
    """Return whether a kernel's program is the Python of this server, by its name or its path."""
    return program == sys.executable or _SERVERS_PYTHON.fullmatch(program) is not None


def use_own_packages(server: ServerApp) -> None:
    """Let kernels and terminals find the person's packages. Call it before the server makes its managers.

    It does so in a task of the scheduler, and where the server's own environment is read-only. On one's own
    computer that environment is one's own.
    """
    if OwnPackages.read(sys.prefix) or not (os.environ.get("PAI_JOB_NAME") or _is_read_only()):
        return
    own = _own(server.log)
    if own is not None:
        os.environ.update(own.variables(os.environ))
        specs: Any = KernelSpecManager
        if server.trait_has_value("kernel_spec_manager_class"):
            specs = server.kernel_spec_manager_class
        server.kernel_spec_manager_class = (
            OwnPythonSpecs
            if specs is KernelSpecManager
            else type(f"OwnPython{specs.__name__}", (OwnPythonSpecs, specs), {})
        )


def own_packages() -> OwnPackages | None:
    """Return what kernels of this server have; None: they run in its own environment."""
    return OwnPackages.read(os.environ.get("VIRTUAL_ENV") or os.devnull)


def kernel_python(log: Any) -> Path:
    """Return the Python of kernels: the person's, made anew where it was removed, else the server's."""
    own = _own(log)
    return Path(sys.executable) if own is None else own.python


def _own(log: Any) -> OwnPackages | None:
    """Make the person's environment where it is missing; None where the home has no room for it."""
    try:
        own = OwnPackages.in_home(Path.home())
        own.make()
    except (OSError, RuntimeError) as error:
        log.warning("Kernels use the packages of the server only: %s", error)
        return None
    return own


def _is_read_only() -> bool:
    """Return whether pip can install nothing for this Python, neither beside it nor with `--user`."""
    return not site.ENABLE_USER_SITE and not os.access(site.getsitepackages()[0], os.W_OK)
