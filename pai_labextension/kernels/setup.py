"""Makes a notebook server use the parts of this package, where nobody has chosen others."""

from __future__ import annotations

from typing import Any

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_server.gateway.gateway_client import GatewayClient
from jupyter_server.serverapp import ServerApp

from .manager import JobKernelsManager, JobSessionManager
from .settings import PAIKernels
from .specs import JobKernelSpecs
from .websocket import JobKernelConnection

_REPLACED = ("kernel_manager_class", "session_manager_class", "kernel_websocket_connection_class")


def use_job_kernels(server: ServerApp) -> None:
    """Let a server start kernels that are jobs; to be called before it makes its managers.

    Who has chosen other managers, or a gateway for kernels, keeps them, and has no such kernels then.
    """
    if not PAIKernels(parent=server).enabled:
        return
    # their defaults cannot be asked for yet
    if GatewayClient.instance(parent=server).gateway_enabled or any(map(server.trait_has_value, _REPLACED)):
        server.log.info("Kernels do not run as jobs: this server has kernel managers of its own.")
        return
    server.kernel_manager_class = JobKernelsManager
    server.session_manager_class = JobSessionManager
    server.kernel_websocket_connection_class = JobKernelConnection
    specs: Any = KernelSpecManager
    if server.trait_has_value("kernel_spec_manager_class"):
        specs = server.kernel_spec_manager_class
    # others know more places where kernels are (those of conda): they are listed beside ours
    server.kernel_spec_manager_class = (
        JobKernelSpecs
        if specs is KernelSpecManager
        else type(f"Job{specs.__name__}", (JobKernelSpecs, specs), {})
    )


def begin_job_kernels(server: ServerApp) -> None:
    """Find the kernels that outlived the server before this one, and ask what can be had."""
    kernels, specs = server.kernel_manager, server.kernel_spec_manager
    if isinstance(kernels, JobKernelsManager) and isinstance(specs, JobKernelSpecs):
        server.io_loop.add_callback(kernels.begin)
        server.io_loop.add_callback(specs.refresh)
