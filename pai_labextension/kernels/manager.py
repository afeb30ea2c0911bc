"""The kernel manager: kernels that are jobs beside those that are not, over a restart of the server."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_client.ioloop.restarter import AsyncIOLoopKernelRestarter
from jupyter_core.paths import jupyter_data_dir
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager, ServerKernelManager
from jupyter_server.services.sessions.sessionmanager import SessionManager
from traitlets import Type, default

from .provisioner import FOUND
from .settings import PAIKernels

if TYPE_CHECKING:
    from .job_spec import KernelEnd
    from .kernel_job import KernelJob
    from .service import FoundKernel, KernelService


# A notebook server's kernels; those that are jobs are found again after a restart, let go at the end.

#: Seconds until kernels are looked for again, at first and at most, where the scheduler does not answer.
_AGAIN, _AGAIN_AT_MOST = 5.0, 60.0
#: Seconds for which lists of kernels wait for the first look.
_SETTLE_SECONDS = 10.0
#: Kernels that have ended of which it is still told why.
_REMEMBERED = 50


def job_of(manager: Any) -> KernelJob | None:
    """Return the job that a kernel is; None for one that runs beside the notebook server."""
    job: KernelJob | None = getattr(getattr(manager, "provisioner", None), "job", None)
    return job


@dataclass(frozen=True, slots=True)
class EndedKernel:
    """A kernel that ended by itself: why, and of which kind it was."""

    kernel_id: str
    kernel_name: str
    job: str
    ending: KernelEnd


class JobKernelRestarter(AsyncIOLoopKernelRestarter):
    """Starts a kernel that died again in its task, and none whose job has ended: it holds nothing more."""

    #: the end of the kernel that runs now
    _watching: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look at the kernel now and then, and as soon as a job says that its kernel has ended."""
        super().start()
        job = job_of(self.kernel_manager)
        if job is not None:
            self._watching = asyncio.ensure_future(self._watch(job))

    def stop(self) -> None:
        """Look no more."""
        super().stop()
        watching, self._watching = self._watching, None
        # a restart that begins here must not end itself
        if watching is not None and watching is not asyncio.current_task():
            watching.cancel()

    async def _watch(self, job: KernelJob) -> None:
        await job.ended()
        if not self.kernel_manager.shutting_down:
            await self.poll()

    async def poll(self) -> None:  # type: ignore[override]
        """Look at the kernel."""
        manager: Any = self.kernel_manager
        job = job_of(manager)
        if job is None or job.ending is None:
            if not manager.shutting_down:
                await super().poll()
            return
        self.stop()
        if manager.shutting_down:
            return
        manager.reason = str(job.ending.message)
        manager.execution_state = "dead"
        owner = manager.parent
        if isinstance(owner, JobKernelsManager):
            owner.let_go(manager.kernel_id)
            owner.remember(EndedKernel(manager.kernel_id, manager.kernel_name, job.job, job.ending))
        self._fire_callbacks("dead")
        await manager.provisioner.cleanup()


class JobKernelManager(ServerKernelManager):
    """One kernel, which may be a job."""

    restarter_class = Type(
        default_value=JobKernelRestarter, klass=AsyncIOLoopKernelRestarter, help="What watches the kernel."
    ).tag(config=True)

    async def interrupt_kernel(self) -> None:  # type: ignore[override]
        """Interrupt what it runs, and what waits until it can."""
        self._call_off()
        await super().interrupt_kernel()

    async def restart_kernel(self, now: bool = False, **kwargs: Any) -> None:  # type: ignore[override]
        """Start it anew; what the one before was busy with is over. `now`: it has died."""
        if job_of(self) is not None:
            self.execution_state = "starting"
        if not now:
            self._call_off()
        await super().restart_kernel(now=now, **kwargs)

    def _call_off(self) -> None:
        job = job_of(self)
        if job is not None:
            job.call_off()


class JobKernelsManager(AsyncMappingKernelManager):
    """All kernels of a notebook server."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pai_settings = PAIKernels(parent=self)
        self.ended: OrderedDict[str, EndedKernel] = OrderedDict()
        #: the way to the scheduler, once somebody has asked for it
        self.pai_service_now: KernelService | None = None
        self._turn = asyncio.Lock()
        self._settled = asyncio.Event()
        self._finding: asyncio.Task[None] | None = None

    @default("kernel_manager_class")
    def _own_kernel_manager_class(self) -> str:
        return f"{__name__}.{JobKernelManager.__name__}"

    async def pai_service(self) -> KernelService:
        """Return the way to the scheduler; what it needs is loaded when it is first asked for."""
        async with self._turn:
            if self.pai_service_now is None:
                module = await asyncio.to_thread(import_module, ".service", __package__)
                self.pai_service_now = module.KernelService(self.pai_settings)
        return self.pai_service_now

    def remember(self, ended: EndedKernel) -> None:
        """Keep why a kernel has ended, for whoever looks at its notebook."""
        self.ended[ended.kernel_id] = ended
        while len(self.ended) > _REMEMBERED:
            self.ended.popitem(last=False)

    # ── found again ───────────────────────────────────────────────────────────────────────────────

    def begin(self) -> None:
        """Look for the kernels that outlived the server before this one."""
        if self.pai_settings.enabled and self.pai_settings.token:
            self._finding = asyncio.ensure_future(self._find())
        else:
            self._settled.set()

    async def settled(self) -> None:
        """Wait until the kernels that run are known, or for as long as somebody waits for a page."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SETTLE_SECONDS):
                await self._settled.wait()

    async def list_kernels(self) -> list[dict[str, Any]]:
        """List the kernels that run, those among them that were there before this server."""
        await self.settled()
        kernels: list[dict[str, Any]] = super().list_kernels()
        return kernels

    async def _find(self) -> None:
        folders = await asyncio.to_thread(import_module, ".channels", __package__)
        await asyncio.to_thread(folders.remove_left_folders)
        service = await self.pai_service()
        client = import_module("pai_scheduler.client.rest")
        pause = _AGAIN
        while True:
            try:
                found = await service.found()
                break
            except (client.UnreachableError, client.ApiError) as error:
                self.log.info("Kernels that are jobs are not known yet: %s", error)
                self._settled.set()
            await asyncio.sleep(pause)
            pause = min(2 * pause, _AGAIN_AT_MOST)
        await asyncio.gather(*map(self._try_to_take_up, found))
        sessions: Any = getattr(self.parent, "session_manager", None)
        if found and hasattr(sessions, "restore"):
            await sessions.restore()
        self._settled.set()

    async def _try_to_take_up(self, found: FoundKernel) -> None:
        try:
            await self._take_up(found)
        except Exception:
            self.log.exception("Kernel %s, which is job %s, is not taken up", found.record.id, found.job)

    async def _take_up(self, found: FoundKernel) -> None:
        record = found.record
        if record.id in self:
            return
        specs: Any = self.kernel_spec_manager
        if hasattr(specs, "keep"):
            specs.keep(record.spec, found.config)
        folder = Path(record.path).parent
        more: dict[str, Any] = {"cwd": str(folder)} if folder.is_absolute() else {}
        await self.start_kernel(kernel_id=record.id, kernel_name=record.spec, **{FOUND: found, **more})
        job = job_of(self.get_kernel(record.id))
        if job is not None and job.busy:
            self.get_kernel(record.id).execution_state = "busy"  # type: ignore[attr-defined]
        self.log.info("Kernel %s runs on as job %s", record.id, found.job)

    def let_go(self, kernel_id: str) -> None:
        """Close all that this server has open to a kernel."""
        self.stop_watching_activity(kernel_id)
        self.stop_buffering(kernel_id)
        self.get_kernel(kernel_id)._close_control_socket()

    # ── let go ────────────────────────────────────────────────────────────────────────────────────

    async def shutdown_all(self, now: bool = False) -> None:  # type: ignore[override]
        """Shut down the kernels of this machine; those that are jobs run on."""
        if self._finding is not None:
            self._finding.cancel()
            await asyncio.gather(self._finding, return_exceptions=True)
        for kernel_id in self.list_kernel_ids():
            kernel: Any = self.get_kernel(kernel_id)
            if job_of(kernel) is not None:
                kernel.stop_restarter()
                self.let_go(kernel_id)
                await kernel.provisioner.leave()
                self.remove_kernel(kernel_id)
        await super().shutdown_all(now=now)
        if self.pai_service_now is not None:
            await self.pai_service_now.close()


# Which notebook has which kernel, also after the notebook server was started anew.

_COLUMNS = ("session_id", "path", "name", "type", "kernel_id")


class JobSessionManager(SessionManager):
    """Keeps the sessions of kernels that are jobs in a small file: those kernels outlive the server."""

    async def list_sessions(self) -> Any:
        """List the sessions, those that were there before this server among them."""
        await self._settled()
        return await super().list_sessions()

    async def session_exists(self, path: str) -> bool:
        """Return whether a notebook has a kernel."""
        await self._settled()
        return bool(await super().session_exists(path))

    async def restore(self) -> None:
        """Give notebooks the kernels that they had when the server before this one ended."""
        for kept in self._read():
            if kept["kernel_id"] not in self.kernel_manager:
                continue
            rows = self.cursor.execute(
                "SELECT 1 FROM session WHERE kernel_id=? OR path=?", (kept["kernel_id"], kept["path"])
            )
            if rows.fetchone() is None:
                self.cursor.execute(
                    "INSERT INTO session VALUES (?,?,?,?,?)", tuple(kept[name] for name in _COLUMNS)
                )

    async def save_session(self, session_id: Any, *values: Any, **named: Any) -> Any:
        """Note a session."""
        model = await super().save_session(session_id, *values, **named)
        self._write()
        return model

    async def update_session(self, session_id: Any, **values: Any) -> None:
        """Note what is new of a session."""
        await super().update_session(session_id, **values)
        self._write()

    async def delete_session(self, session_id: Any) -> None:
        """Note that a session is over."""
        await super().delete_session(session_id)
        self._write()

    async def _settled(self) -> None:
        if isinstance(self.kernel_manager, JobKernelsManager):
            await self.kernel_manager.settled()

    @property
    def _file(self) -> Path:
        settings = getattr(self.kernel_manager, "pai_settings", None)
        server = settings.server if settings is not None else ""
        name = hashlib.sha256(server.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return Path(jupyter_data_dir()) / "pai-kernels" / f"{name}.json"

    def _read(self) -> list[dict[str, Any]]:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return []
        return [
            each
            for each in (found if isinstance(found, list) else [])
            if isinstance(each, dict) and all(isinstance(each.get(name), str) for name in _COLUMNS)
        ]

    def _write(self) -> None:
        rows = [dict(row) for row in self.cursor.execute("SELECT * FROM session").fetchall()]
        kept = [row for row in rows if self._is_job(row["kernel_id"]) and None not in row.values()]
        file = self._file
        if not kept and not file.exists():
            return
        part = file.with_name(f"{file.name}.{os.getpid()}.part")
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            part.write_text(json.dumps(kept), encoding="utf-8")
            part.replace(file)
        except OSError as error:
            self.log.warning("Which notebook has which kernel cannot be kept in %s: %s", file, error)

    def _is_job(self, kernel_id: str) -> bool:
        return (
            kernel_id in self.kernel_manager and job_of(self.kernel_manager.get_kernel(kernel_id)) is not None
        )
