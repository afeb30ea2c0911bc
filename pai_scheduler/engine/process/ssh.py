"""The service's side of the SSH servers of tasks of the process engine: started when somebody wants in."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from pai_scheduler.engine.protocol import NoSshEndpointError, SshEndpoint
from pai_scheduler.i18n import msg
from pai_scheduler.job.task import TaskRef

from . import ssh_server
from .task_folder import SSH_ORDER, LaunchSpec, TaskFolder, ring

#: Seconds that a server has for its start, on a busy machine; how often it is looked whether it has.
_PATIENCE, _PAUSE = 20.0, 0.02
#: Looks after which it is ordered again: a supervisor that has not yet seen the end of another starts none.
_LOOKS_PER_ORDER = 25


#: The port of a server that listens; None: not yet.
_Found = int | None

#: Makes the small files that the SSH server of a task reads, by name.
SshFiles = Callable[[TaskRef], Mapping[str, bytes]]


def no_ssh_files(task: TaskRef) -> Mapping[str, bytes]:  # noqa: ARG001
    """Return none: all that the server reads came with the launch."""
    return {}


async def open_way(
    folder: TaskFolder,
    address: str,
    files: Callable[[], Mapping[str, bytes]],
    in_thread: Callable[[Callable[[], _Found]], Awaitable[_Found]],
) -> SshEndpoint:
    """Return where a running task's server listens, and start it if need be; NoSshEndpointError says why not.

    `files` makes what a server reads that is started.
    `in_thread` runs a short blocking step. The caller asks for one task once at a time.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            for look in itertools.count():
                if (port := await in_thread(partial(_step, folder, files, look))) is not None:
                    return SshEndpoint(address, port, isolated=False)
                await asyncio.sleep(_PAUSE)
    raise NoSshEndpointError(
        msg("The task's SSH server did not start within {seconds} seconds.", seconds=int(_PATIENCE))
    )


def _step(folder: TaskFolder, files: Callable[[], Mapping[str, bytes]], look: int) -> _Found:
    """Look for the `look`th time; order a server where there is none."""
    try:
        spec = folder.launch_spec()
        server = ssh_server.look(folder.path)
    except (OSError, ValueError):
        raise _not_running() from None
    if server.alive and "port" in server.answer:
        return server.answer["port"]
    if server.alive:
        return None
    if look and "problem" in server.answer:
        raise _failed(spec, server.answer)
    if look % _LOOKS_PER_ORDER == 0:
        _order(folder, spec, files)
    return None


def _order(folder: TaskFolder, spec: LaunchSpec, files: Callable[[], Mapping[str, bytes]]) -> None:
    if not spec.get("ssh_port"):
        raise NoSshEndpointError(msg("The task was started without an SSH server."))
    try:
        folder.give(files())
    except FileNotFoundError:
        raise _not_running() from None
    except OSError as error:
        problem = error.strerror or str(error)
        raise _failed(spec, {"problem": problem}) from error
    ssh_server.forget(folder.path)
    if not ring(folder.control, SSH_ORDER):
        raise _not_running()


def _not_running() -> NoSshEndpointError:
    return NoSshEndpointError(msg("The task does not run."))


def _failed(spec: LaunchSpec, answer: ssh_server.ServerStatus) -> NoSshEndpointError:
    if answer.get("taken"):
        return NoSshEndpointError(
            msg(
                "Port {port} of this machine, where the task's SSH server is to listen, is taken by another "
                "program.",
                port=spec.get("ssh_port"),
            )
        )
    return NoSshEndpointError(
        msg("The task's SSH server cannot work: {problem}", problem=answer.get("problem", ""))
    )
