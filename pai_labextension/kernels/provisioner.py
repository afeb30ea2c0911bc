"""The provisioner `pai-provisioner`: with it jupyter_client starts and ends kernels that are jobs."""

from __future__ import annotations

import asyncio
import signal
import sys
import uuid
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.provisioner_base import KernelProvisionerBase
from traitlets import Bool, Float, Integer, Unicode, default

from ..own_python import runs_in_servers_python
from .settings import PAIKernels

if TYPE_CHECKING:
    from .kernel_job import KernelJob
    from .service import FoundKernel, KernelService

#: What a start is given where the kernel's job is there already: the `FoundKernel`.
FOUND = "pai_found"


class PAIProvisioner(KernelProvisionerBase):
    """Runs a kernel as a job. Its traits are set by the kernelspec's `kernel_provisioner.config`."""

    image = Unicode(help="Default: the notebook server's own.").tag(config=True)
    gpus = Integer(0, min=0).tag(config=True)
    gpu_type = Unicode(help="Empty: any type.").tag(config=True)
    cpus = Integer(min=1).tag(config=True)
    memory_mb = Integer(min=100).tag(config=True)
    shm_mb = Integer(min=1).tag(config=True)
    virtual_cluster = Unicode().tag(config=True)
    preemptible = Bool().tag(config=True)
    idle_minutes = Float(min=0).tag(config=True)
    python = Unicode().tag(config=True)

    job: KernelJob | None = None
    _launched = False
    _key = b""

    @default("cpus")
    def _default_cpus(self) -> int:
        return int(self.settings.cpus)

    @default("memory_mb")
    def _default_memory(self) -> int:
        return int(self.settings.memory_mb)

    @default("shm_mb")
    def _default_shm(self) -> int:
        return int(self.settings.shm_mb)

    @default("preemptible")
    def _default_preemptible(self) -> bool:
        return bool(self.settings.preemptible)

    @default("idle_minutes")
    def _default_idle(self) -> float:
        return float(self.settings.idle_minutes)

    @property
    def settings(self) -> PAIKernels:
        """Return the settings of all kernels."""
        if self._settings is None:
            manager = getattr(self.parent, "parent", None)
            self._settings = getattr(manager, "pai_settings", None) or PAIKernels(parent=self)
        return self._settings

    _settings: PAIKernels | None = None

    # ── starting ──────────────────────────────────────────────────────────────────────────────────

    @property
    def has_process(self) -> bool:
        """Return whether a kernel waits for its task, or runs in it."""
        return self._launched

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Write the command as the task needs it, which has a connection file of its own."""
        words = [*self.kernel_spec.argv, *kwargs.pop("extra_arguments", [])]
        known = {"{prefix}": sys.prefix, "{resource_dir}": str(self.kernel_spec.resource_dir)}
        for name, value in known.items():
            words = [word.replace(name, value) for word in words]
        if words and runs_in_servers_python(words[0]):
            words[0] = self.settings.kernel_python
        return await super().pre_launch(cmd=words, **kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Submit the job, or use the one that is there, and return at once how to talk to its kernel.

        KernelNotStartedError where there can be none.
        """
        found = kwargs.get(FOUND)
        runs = False
        if self.job is None:
            service = await self._service()
            if found is None:
                self.job = await service.submit(*await self._asked_for(service, kwargs))
            else:
                self.job, runs = await self._take_up(service, found)
            self._key = self.job.key if runs else uuid.uuid4().hex.encode("ascii")
        await self.job.channels.listen()
        if not runs:
            self.job.start(await self._kernel(cmd, kwargs), self._key)
        self._launched = True
        self.connection_info = cast("KernelConnectionInfo", self.job.channels.connection_info(self._key))
        return self.connection_info

    async def _asked_for(self, service: KernelService, kwargs: dict[str, Any]) -> Any:
        from .job_spec import KernelDemand, KernelRecord

        async with service.connections.client() as client:
            own = await service.own_server(client)
        settings = self.settings
        image = self.image or settings.image or own.image
        self._same_image = not own.image or image == own.image
        demand = KernelDemand(
            image or "local/python",
            self.gpus,
            self.gpu_type,
            self.cpus,
            self.memory_mb,
            self.shm_mb,
            self.virtual_cluster or settings.virtual_cluster or own.virtual_cluster or "default",
            self.preemptible,
            self.idle_minutes * 60,
            self._python(),
        )
        name = str(getattr(self.parent, "kernel_name", ""))
        path = str((kwargs.get("env") or {}).get("JPY_SESSION_NAME", ""))
        return KernelRecord(self.kernel_id, settings.server, name, path), demand

    _same_image = True

    async def _take_up(self, service: KernelService, found: FoundKernel) -> tuple[KernelJob, bool]:
        """Follow a job that is there; return whether a kernel runs in it already."""
        from .service import memory_of

        async with service.connections.client() as client:
            own = await service.own_server(client)
        user = await service.connections.owner()
        image = str(found.config["image"])
        self._same_image = not own.image or image == own.image
        job = service.follow(found.job, user, found.record.id, self._python(), memory_of(found.config))
        try:
            return job, await job.attached()
        except BaseException:
            await job.leave()
            raise

    async def _kernel(self, cmd: list[str], kwargs: dict[str, Any]) -> Any:
        from .job_spec import carried
        from .kernel_job import KernelStart

        spec_env = list(self.kernel_spec.env)
        more = [*self.settings.carry, *spec_env]
        env = carried(kwargs["env"], same_image=self._same_image, more=more)
        argv = list(cmd)
        if argv[0] == self.settings.kernel_python and not self._same_image:
            argv[0] = self._python()
        cwd = str(kwargs.get("cwd") or Path.cwd())
        return KernelStart(argv, env, cwd, str(getattr(self.parent, "kernel_name", "")))

    def _python(self) -> str:
        """Return the Python that runs the runner in the task."""
        return self.settings.own_python if self._same_image else self.python or self.settings.python

    async def _service(self) -> KernelService:
        manager = getattr(self.parent, "parent", None)
        shared = getattr(manager, "pai_service", None)
        if shared is not None:
            service: KernelService = await shared()
            return service
        # a third of a second: meanwhile the server goes on with everything else
        module = await asyncio.to_thread(import_module, ".service", __package__)
        own: KernelService = module.KernelService(self.settings)
        return own

    # ── running ───────────────────────────────────────────────────────────────────────────────────

    async def poll(self) -> int | None:
        """Return None while it waits or runs, else its exit code."""
        return None if self.job is None or not self._launched else self.job.code

    async def wait(self) -> int | None:
        """Wait for its end."""
        if self.job is None or not self._launched:
            return None
        code = await self.job.ended()
        self._launched = False
        return code

    async def send_signal(self, signum: int) -> None:
        """Send it a signal; one that waits for its task gets none."""
        if self.job is not None:
            if signum == 0:
                return
            await self.job.signal(signum)

    async def kill(self, restart: bool = False) -> None:  # noqa: ARG002 - its task stays until `cleanup`
        """End it at once."""
        if self.job is not None:
            self.job.expect_end()
            await self.job.signal(signal.SIGKILL)

    async def terminate(self, restart: bool = False) -> None:  # noqa: ARG002
        """Ask it to end."""
        if self.job is not None:
            self.job.expect_end()
            await self.job.signal(signal.SIGTERM)

    async def shutdown_requested(self, restart: bool = False) -> None:  # noqa: ARG002
        """Give up one that still waits: there is nobody who hears the request."""
        if self.job is not None:
            self.job.expect_end()

    async def cleanup(self, restart: bool = False) -> None:
        """Give the resources back, unless another kernel starts in the same task."""
        if self.job is not None and not restart:
            job, self.job, self._launched = self.job, None, False
            await job.finish()

    async def leave(self) -> None:
        """Let it run on without this notebook server."""
        if self.job is not None:
            job, self.job, self._launched = self.job, None, False
            await job.leave()
