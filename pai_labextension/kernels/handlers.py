"""REST of kernels that are jobs, and their routes."""

from __future__ import annotations

import json
from http import HTTPStatus

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web

from pai_labextension.lazy_routes import RouteGroup, RouteSettings
from pai_labextension.models import KernelState, KernelStates
from pai_scheduler.i18n import Message

from ..base_handlers import PAIHandler
from ..callers import RefusedError
from ..messages import msg
from .channels import RunnerError
from .kernel_job import KernelJob
from .manager import EndedKernel, JobKernelsManager, job_of

# `<base_url>/pai/kernels`: where the kernels are that run as jobs, and more time for one that is idle.

#: What jupyter_server has for a kernel's id.
ID_PATTERN = r"(\w+-\w+-\w+-\w+-\w+)"


class _Kernels(PAIHandler, APIHandler):
    # a notebook that looks every few seconds must not keep an idle server alive
    _track_activity = False

    def jobs(self) -> dict[str, KernelJob]:
        """Return the kernels that are jobs, by id."""
        manager = self.kernel_manager
        found = (
            (kernel_id, job_of(manager.get_kernel(kernel_id))) for kernel_id in manager.list_kernel_ids()
        )
        return {kernel_id: job for kernel_id, job in found if job is not None}


class KernelsHandler(_Kernels):
    """Lists them."""

    @web.authenticated
    @authorized
    def get(self) -> None:
        """Say where each one is, and why those have ended that ended by themselves."""
        manager, jobs = self.kernel_manager, self.jobs()
        if isinstance(manager, JobKernelsManager) and manager.pai_service_now is not None:
            # what the scheduler says from now on is for this reader, too
            manager.pai_service_now.connections.locale = self.locale_asked
        ended = manager.ended.values() if isinstance(manager, JobKernelsManager) else ()
        states: KernelStates = {
            "kernels": [
                *(self._running(kernel_id, job) for kernel_id, job in jobs.items()),
                *(self._ended(each) for each in ended if each.kernel_id not in jobs),
            ]
        }
        self.finish(json.dumps(states))

    def _running(self, kernel_id: str, job: KernelJob) -> KernelState:
        progress, left = job.progress, job.idle_left
        return {
            "id": kernel_id,
            "name": str(getattr(self.kernel_manager.get_kernel(kernel_id), "kernel_name", "")),
            "job": job.job,
            "user": job.user,
            "phase": progress.phase.value,
            "reason": self._text(progress.reason),
            "place": progress.place,
            "idleLimit": round(job.idle_limit),
            "idleLeft": None if left is None else round(left),
            "deaths": job.deaths,
            "death": self._text(job.death or ""),
            "log": "",
        }

    def _ended(self, ended: EndedKernel) -> KernelState:
        return {
            "id": ended.kernel_id,
            "name": ended.kernel_name,
            "job": ended.job,
            "user": "",
            "phase": "ended",
            "reason": self._text(ended.ending.message),
            "place": None,
            "idleLimit": 0,
            "idleLeft": None,
            "deaths": 0,
            "death": "",
            "log": ended.ending.log,
        }

    def _text(self, text: Message | str) -> str:
        return text.in_locale(self.locale_asked) if isinstance(text, Message) else text


class KeepKernelHandler(_Kernels):
    """Gives an idle kernel its whole time again."""

    @web.authenticated
    @authorized
    async def post(self, kernel_id: str) -> None:
        """Count its idleness from now."""
        job = self.jobs().get(kernel_id)
        if job is None:
            raise RefusedError(HTTPStatus.NOT_FOUND, msg("This kernel has ended."))
        try:
            await job.keep()
        except (ConnectionError, TimeoutError, RunnerError) as error:
            raise RefusedError(
                HTTPStatus.BAD_GATEWAY, msg("The task cannot be reached: {reason}", reason=str(error))
            ) from error
        self.set_status(HTTPStatus.NO_CONTENT)
        self.finish()


# The routes about kernels that are jobs.


def make_part(settings: RouteSettings) -> RouteGroup:  # noqa: ARG001 - the kernels have theirs
    """Make the routes; what is behind them belongs to the server's kernels."""

    async def close() -> None:
        pass

    return RouteGroup(
        [(r"/pai/kernels", KernelsHandler, {}), (rf"/pai/kernels/{ID_PATTERN}/keep", KeepKernelHandler, {})],
        close,
    )
