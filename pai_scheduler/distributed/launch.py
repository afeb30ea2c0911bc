#!/usr/bin/env python3
"""Starts a program in the tasks of a job, as PyTorch, TensorFlow, MPI and Horovod want it started.

`python3 launch.py torch -- train.py --epochs 3`, in the command of every task. It reads the environment that
each task gets (docs/users/environment.md). This file needs nothing but Python 3.8, so that it can travel with
a job's code; `python3 -m pai_scheduler.distributed.launch --copy FOLDER` puts it there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Labels that every role has, for other purposes.
_OWN_LABELS = ("http", "ssh")
#: Seconds in which the first task of a gang has to be reached: all of them start together.
_MEETING = 300.0


class LaunchError(Exception):
    """The program cannot be started; the text says why and what to do."""


@dataclass(frozen=True)
class Task:
    """Task of a role in which a program runs. `count`: of the role's tasks; `gpus`: of each of them."""

    role: str
    index: int
    count: int
    gpus: int


def _value(environ: Mapping[str, str], name: str) -> str:
    """Return a variable; one with a role's `.` or `~`, which no shell passes on, is there with `_`, too."""
    return environ[name] if name in environ else environ[name.replace(".", "_").replace("~", "_")]


def this_task(environ: Mapping[str, str]) -> Task:
    """Find out which task of a job this is. LaunchError: it is none."""
    try:
        return Task(
            environ["PAI_CURRENT_TASK_ROLE_NAME"],
            int(environ["PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"]),
            int(environ["PAI_CURRENT_TASK_ROLE_TASK_COUNT"]),
            int(environ["PAI_CURRENT_TASK_ROLE_GPU_COUNT"]),
        )
    except KeyError as missing:
        raise LaunchError(
            f"{missing.args[0]} is not set: this program is for the tasks of a job. Put it into the command "
            "of a task role."
        ) from None


def port_label(environ: Mapping[str, str], role: str) -> str:
    """Choose the port label at which the tasks of a role meet: one that its job lists, else `http`."""
    prefixes = [f"PAI_PORT_LIST_{name}_0_" for name in (role, role.replace(".", "_").replace("~", "_"))]
    labels = {name[len(one) :] for name in environ for one in prefixes if name.startswith(one)}
    return min(labels.difference(_OWN_LABELS), default="http")


def address(environ: Mapping[str, str], role: str, index: int, label: str) -> str:
    """Return `host:port` of a task. LaunchError: the job has no such task or label."""
    try:
        host = _value(environ, f"PAI_HOST_IP_{role}_{index}")
    except KeyError:
        raise LaunchError(f"This job has no task {index} in a role {role}.") from None
    try:
        port = _value(environ, f"PAI_PORT_LIST_{role}_{index}_{label}").split(",")[0]
    except KeyError:
        raise LaunchError(
            f"The role {role} has no port with the label {label}: add it to portList, or choose another "
            "with --port."
        ) from None
    return f"{host}:{port}"


def processes(task: Task, wanted: int | None = None) -> int:
    """Return how many processes run in a task: one for each GPU, at least one, unless said otherwise."""
    return wanted or max(1, task.gpus)


def torch_environment(
    environ: Mapping[str, str], label: str | None = None, local_rank: int = 0, per_task: int = 1
) -> dict[str, str]:
    """Return the variables that `torch.distributed` reads, for a process of this task.

    See https://pytorch.org/docs/stable/distributed.html, "Environment variable initialization".
    """
    task = this_task(environ)
    host, _, port = address(environ, task.role, 0, label or port_label(environ, task.role)).rpartition(":")
    return {
        "MASTER_ADDR": host,
        "MASTER_PORT": port,
        "WORLD_SIZE": str(task.count * per_task),
        "RANK": str(task.index * per_task + local_rank),
        "LOCAL_RANK": str(local_rank),
        "LOCAL_WORLD_SIZE": str(per_task),
    }


def torch_command(
    environ: Mapping[str, str],
    program: Sequence[str],
    label: str | None = None,
    wanted: int | None = None,
) -> list[str]:
    """Return the command that is `torchrun` for this task: one group of workers over all tasks of its role.

    See https://pytorch.org/docs/stable/elastic/run.html.
    """
    task = this_task(environ)
    host, _, port = address(environ, task.role, 0, label or port_label(environ, task.role)).rpartition(":")
    return [
        sys.executable,
        "-m",
        "torch.distributed.run",
        f"--nnodes={task.count}",
        f"--node_rank={task.index}",
        f"--nproc_per_node={processes(task, wanted)}",
        f"--master_addr={host}",
        f"--master_port={port}",
        *program,
    ]


def tf_config(environ: Mapping[str, str], label: str | None = None) -> dict[str, object]:
    """Return what TensorFlow reads from TF_CONFIG: where the tasks of all roles are, and which this one is.

    The roles are to be called as TensorFlow calls them: chief, worker, ps, evaluator. See
    https://www.tensorflow.org/guide/distributed_training#setting_up_tf_config_environment_variable.
    """
    task = this_task(environ)
    cluster = {}
    for role in environ["PAI_JOB_TASK_ROLE_LIST"].split(","):
        count = int(_value(environ, f"PAI_TASK_ROLE_TASK_COUNT_{role}"))
        here = label or port_label(environ, role)
        cluster[role] = [address(environ, role, index, here) for index in range(count)]
    return {"cluster": cluster, "task": {"type": task.role, "index": task.index}}


def hostfile(environ: Mapping[str, str], role: str | None = None, wanted: int | None = None) -> str:
    """Return the hosts of a role (this task's own where none is named), a line each, as Open MPI reads them.

    Tasks reach each other by their names with `ssh` (docs/users/ssh.md). See
    https://www.open-mpi.org/faq/?category=running#mpirun-hostfile.
    """
    task = this_task(environ)
    name = role or task.role
    try:
        count = int(_value(environ, f"PAI_TASK_ROLE_TASK_COUNT_{name}"))
        gpus = int(_value(environ, f"PAI_RESOURCE_{name}").split(",")[0])
    except KeyError:
        raise LaunchError(f"This job has no role {name}.") from None
    slots = wanted or max(1, gpus)
    return "".join(f"{name}-{index} slots={slots}\n" for index in range(count))


def mpi_command(hosts: Path, count: int, program: Sequence[str], *, horovod: bool = False) -> list[str]:
    """Return the command of `mpirun` for so many processes on these hosts.

    The environment of the tasks is theirs already; with `horovod` the options that its documentation gives
    (https://horovod.readthedocs.io/en/stable/mpi.html).
    """
    options = ["--allow-run-as-root", "--hostfile", str(hosts), "-np", str(count)]
    if horovod:
        options += ["-bind-to", "none", "-map-by", "slot", "-mca", "pml", "ob1", "-mca", "btl", "^openib"]
    for name in ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH"):
        if name in os.environ:
            options += ["-x", name]
    return ["mpirun", *options, *program]


def run_mpi(arguments: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Run `mpirun` in the first task of the role; in the others wait for its end. Return its exit code."""
    task = this_task(environ)
    meeting = address(environ, task.role, 0, arguments.port or port_label(environ, task.role))
    if task.index:
        return _wait_for_first(meeting)
    if shutil.which("mpirun") is None:
        raise LaunchError("There is no mpirun in this image: install Open MPI in it (openmpi-bin).")
    hosts = Path("pai-hosts")
    hosts.write_text(hostfile(environ, wanted=arguments.processes))
    count = task.count * processes(task, arguments.processes)
    command = mpi_command(hosts.resolve(), count, arguments.program, horovod=arguments.kind == "horovod")
    host, _, port = meeting.rpartition(":")
    with socket.create_server((host, int(port))) as server:
        return _run_and_tell(command, server, task.count - 1)


def _run_and_tell(command: Sequence[str], server: socket.socket, others: int) -> int:
    """Run a command; tell its exit code to so many other tasks, and return it."""
    server.settimeout(0.2)
    waiting: list[socket.socket] = []
    program = subprocess.Popen(command)  # noqa: S603  (what the job's own command says)
    until = None
    while True:
        code = program.poll()
        if code is not None and until is None:
            until = time.monotonic() + _MEETING
        if until is not None and (len(waiting) >= others or time.monotonic() > until):
            break
        with suppress(socket.timeout):
            waiting.append(server.accept()[0])
    code = program.wait() & 0xFF
    for other in waiting:
        with other, suppress(OSError):
            other.sendall(bytes([code]))
    return code


def _wait_for_first(meeting: str) -> int:
    host, _, port = meeting.rpartition(":")
    until = time.monotonic() + _MEETING
    while True:
        try:
            connection = socket.create_connection((host, int(port)), timeout=10)
            break
        except OSError as error:
            if time.monotonic() > until:
                raise LaunchError(
                    f"The first task of this role was not reached at {meeting}: {error}. Its log says more."
                ) from None
            time.sleep(0.2)
    connection.settimeout(None)
    with connection:
        told = connection.recv(1)
    if not told:
        raise LaunchError("The first task of this role went away before mpirun had ended. Its log says why.")
    return told[0]


def _replace(command: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """Become another program, so that it gets the signals that stop a task."""
    sys.stdout.flush()
    try:
        os.execvpe(command[0], list(command), dict(environ))  # noqa: S606  (what the job's own command says)
    except OSError as error:
        raise LaunchError(f"{command[0]} cannot be started: {error.strerror}.") from None


def _start_torch(options: argparse.Namespace) -> NoReturn:
    """Become the program where a task has one process of it, else `torchrun`."""
    if processes(this_task(os.environ), options.processes) == 1:
        told = torch_environment(os.environ, options.port)
        _replace(_with_interpreter(options.program), {**os.environ, **told})
    _replace(torch_command(os.environ, options.program, options.port, options.processes), os.environ)


def _with_interpreter(program: Sequence[str]) -> list[str]:
    return [sys.executable, *program] if program[0].endswith(".py") else list(program)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="launch.py", description=__doc__.split("\n")[0] if __doc__ else None
    )
    parser.add_argument("--copy", metavar="FOLDER", help="copy this file into a folder of code, and end")
    kinds = parser.add_subparsers(dest="kind", metavar="torch | tensorflow | mpi | horovod")
    for kind, what in (
        (
            "torch",
            "one process for each GPU, in all tasks of this role (by torchrun where that is more than one)",
        ),
        ("tensorflow", "the program with TF_CONFIG; roles are called chief, worker, ps, evaluator"),
        ("mpi", "mpirun over all tasks of this role, from the first of them"),
        ("horovod", "the same, with the options that Horovod's documentation gives"),
    ):
        one = kinds.add_parser(kind, help=what, description=what)
        one.add_argument(
            "--port", metavar="LABEL", help="the port label at which tasks meet (a listed one, else http)"
        )
        one.add_argument("--processes", type=int, help="in each task (as many as it has GPUs, at least one)")
        one.add_argument("program", nargs="+", help="the program and its arguments, after --")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Start what the command line says; return an exit code where this process has not become the program."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.copy:
        print(shutil.copy(Path(__file__), Path(options.copy) / "launch.py"))
        return 0
    if options.kind is None:
        parser.error("say what to start: torch, tensorflow, mpi or horovod")
    try:
        if options.kind == "torch":
            _start_torch(options)
        if options.kind == "tensorflow":
            told = json.dumps(tf_config(os.environ, options.port))
            _replace(_with_interpreter(options.program), {**os.environ, "TF_CONFIG": told})
        options.program = _with_interpreter(options.program)
        return run_mpi(options, os.environ)
    except LaunchError as error:
        print(f"launch: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
