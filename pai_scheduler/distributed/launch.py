"""Starts a distributed program in a task: torch, MPI, Horovod or TensorFlow, from the task's environment.

This file needs nothing but Python 3.8 and its standard library, so that a copy of it can travel with a job's
code into any image: `python3 "$PAI_CODE_FOLDER/launch.py" torch -- train.py` (docs/users/distributed.md).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

KINDS = ("torch", "mpi", "horovod", "tensorflow")


class LaunchError(Exception):
    """The program cannot be started; the sentence says why, and what to do."""


def _read(env: Mapping[str, str], name: str) -> str:
    # a name with `.` or `~`, which no shell passes on, is there with `_` too
    for known in (name, name.replace(".", "_").replace("~", "_")):
        if known in env:
            return env[known]
    raise LaunchError(f"The variable {name} is not set. Run this in a task of a job.")


def _roles(env: Mapping[str, str]) -> list[str]:
    return _read(env, "PAI_JOB_TASK_ROLE_LIST").split(",")


def _count(env: Mapping[str, str], role: str) -> int:
    return int(_read(env, f"PAI_TASK_ROLE_TASK_COUNT_{role}"))


def _address(env: Mapping[str, str], role: str, index: int) -> str:
    return _read(env, f"PAI_HOST_IP_{role}_{index}")


def _port(env: Mapping[str, str], role: str, index: int, label: str) -> str:
    try:
        ports = _read(env, f"PAI_PORT_LIST_{role}_{index}_{label}")
    except LaunchError:
        raise LaunchError(
            f"The role {role} has no port with the label {label}. "
            f'Add {{"label": "{label}", "beginAt": 0, "portNumber": 1}} to its portList, '
            "or choose another by --port."
        ) from None
    return ports.split(",")[0]


def _slots(env: Mapping[str, str], role: str) -> int:
    """Return how many processes a task of this role runs: one a GPU, at least one."""
    return max(1, int(_read(env, f"PAI_RESOURCE_{role}").split(",")[0]))


def torch_environment(env: Mapping[str, str], port_label: str = "http") -> dict[str, str]:
    """Return what `torch.distributed` reads, for one process in each task of this task's role.

    Process 0 is in task 0, and listens on that task's first port of this label. Raises `LaunchError`.
    """
    role = _read(env, "PAI_CURRENT_TASK_ROLE_NAME")
    return {
        "MASTER_ADDR": _address(env, role, 0),
        "MASTER_PORT": _port(env, role, 0, port_label),
        "WORLD_SIZE": str(_count(env, role)),
        "RANK": _read(env, "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"),
        "LOCAL_WORLD_SIZE": "1",
        "LOCAL_RANK": "0",
    }


def tf_config(env: Mapping[str, str], port_label: str = "http") -> dict[str, object]:
    """Return the value of TF_CONFIG: every role of the job by its name, and which task this is.

    Raises `LaunchError`.
    """
    return {
        "cluster": {
            role: [
                f"{_address(env, role, index)}:{_port(env, role, index, port_label)}"
                for index in range(_count(env, role))
            ]
            for role in _roles(env)
        },
        "task": {
            "type": _read(env, "PAI_CURRENT_TASK_ROLE_NAME"),
            "index": int(_read(env, "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX")),
        },
    }


def _slots_by_host(env: Mapping[str, str]) -> dict[str, int]:
    first, *others = _roles(env)
    slots = {
        f"{role}-{index}": _slots(env, role)
        for role in others or [first]
        for index in range(_count(env, role))
    }
    # no SSH leads from task to task there, and all of them are on this machine
    return {"localhost": sum(slots.values())} if "PAI_PROCESS_ENGINE_TASK" in env else slots


def hostfile(env: Mapping[str, str]) -> str:
    """Return Open MPI's list of hosts: the tasks of all roles but the first, or of the only role.

    Raises `LaunchError`.
    """
    return "".join(f"{host} slots={slots}\n" for host, slots in _slots_by_host(env).items())


def torch_command(
    env: Mapping[str, str], program: Sequence[str], port_label: str, torchrun: str
) -> list[str]:
    """Return the line that starts `torchrun` with one process for each GPU of this task, at least one."""
    meeting = torch_environment(env, port_label)
    return [
        torchrun,
        f"--nnodes={meeting['WORLD_SIZE']}",
        f"--node_rank={meeting['RANK']}",
        f"--nproc_per_node={_slots(env, _read(env, 'PAI_CURRENT_TASK_ROLE_NAME'))}",
        f"--master_addr={meeting['MASTER_ADDR']}",
        f"--master_port={meeting['MASTER_PORT']}",
        *program,
    ]


def mpi_command(env: Mapping[str, str], program: Sequence[str], hosts: str, *, horovod: bool) -> list[str]:
    """Return the line that starts Open MPI's `mpirun` over the hosts of this file."""
    line = ["mpirun", "-np", str(sum(_slots_by_host(env).values())), "--hostfile", hosts]
    if os.geteuid() == 0:
        line.append("--allow-run-as-root")
    if horovod:
        # Horovod's processes have threads of their own, which one core each would hold up
        line += ["--bind-to", "none", "--map-by", "slot"]
    return [*line, *program]


def starts_mpi(env: Mapping[str, str]) -> bool:
    """Return whether this task is the one that starts `mpirun`.

    Raises `LaunchError` if the job would never end.
    """
    first = _roles(env)[0]
    if _read(env, f"PAI_MIN_SUCCEEDED_TASK_COUNT_{first}") != "1" and _read(env, "PAI_JOB_TASK_COUNT") != "1":
        raise LaunchError(
            f"The job would never end: all tasks but {first}-0 wait. "
            f'Set "minSucceededTaskCount": 1 in the role {first}, so that they end when mpirun has.'
        )
    role = _read(env, "PAI_CURRENT_TASK_ROLE_NAME")
    return role == first and _read(env, "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX") == "0"


def _replace(line: Sequence[str], env: Mapping[str, str]) -> None:
    try:
        os.execvpe(line[0], list(line), dict(env))  # noqa: S606 - no shell is what is wanted
    except OSError as error:
        raise LaunchError(
            f"{line[0]} cannot be started: {error.strerror}. Is it in the task's image, and spelt so?"
        ) from error


def launch(kind: str, program: Sequence[str], port_label: str, env: Mapping[str, str]) -> None:
    """Become the program, or wait while another task runs it. Raises `LaunchError`."""
    if kind == "tensorflow":
        _replace(program, {**env, "TF_CONFIG": json.dumps(tf_config(env, port_label))})
    elif kind == "torch":
        torchrun = shutil.which("torchrun")
        if torchrun:
            _replace(torch_command(env, program, port_label, torchrun), env)
        # torchrun takes a file of Python; so does this
        python = [sys.executable] if program[0].endswith(".py") else []
        _replace([*python, *program], {**env, **torch_environment(env, port_label)})
    elif starts_mpi(env):
        hosts = Path(tempfile.mkdtemp(prefix="pai-mpi-")) / "hosts"
        hosts.write_text(hostfile(env))
        _replace(mpi_command(env, program, str(hosts), horovod=kind == "horovod"), env)
    else:
        print(f"{_roles(env)[0]}-0 runs mpirun; this task waits for its processes.", flush=True)
        while True:
            signal.pause()


def main(arguments: Sequence[str] | None = None) -> int:
    """Start what the command line says; 2 if it cannot be started, with the reason on standard error."""
    parser = argparse.ArgumentParser(
        prog="launch",
        description="Start a distributed program in a task of a job.",
        usage="%(prog)s KIND [--port LABEL] -- PROGRAM …",
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument(
        "--port", default="http", metavar="LABEL", help="port label to meet at (torch, tensorflow)"
    )
    given = list(sys.argv[1:] if arguments is None else arguments)
    at = given.index("--") if "--" in given else len(given)
    options = parser.parse_args(given[:at])
    if not given[at + 1 :]:
        parser.error("name the program to start after --, as in: torch -- train.py")
    try:
        launch(options.kind, given[at + 1 :], options.port, os.environ)
    except LaunchError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
