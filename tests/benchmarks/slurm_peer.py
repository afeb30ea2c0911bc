"""A Slurm of its own on this machine, as a peer to measure against: daemons started by hand, no systemd.

Debian's packages: slurm-wlm, munge, slurmrestd. Needs root, as slurmrestd must run as somebody else.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import psutil

from pai_scheduler.testing.ports import free_ports
from tests.benchmarks.submit_load import http_request
from tests.testbed.machine import CannotError

_PROGRAMS = ("slurmctld", "slurmd", "slurmrestd", "munged", "scontrol")
_START_SECONDS = 30.0
_CONFIGURATION = """
ClusterName=peer
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={port}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
SchedulerType=sched/builtin
PriorityType=priority/basic
SchedulerParameters={parameters}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MaxJobCount=2000000
MinJobAge=10
ReturnToService=2
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={node_port} CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=n1 Default=YES MaxTime=INFINITE State=UP
"""
#: Many submits in a moment are taken first and looked at together (Slurm's own guide to throughput) …
_FOR_MANY = "defer,batch_sched_delay=0,sched_min_interval=50000,default_queue_depth=1000,max_rpc_cnt=150"
#: … or each is looked at as soon as it comes.
_FOR_ONE = "batch_sched_delay=0,sched_min_interval=0,default_queue_depth=1000"


class SlurmPeer:
    """Slurm's controller, one node with so many `cpus`, and its REST service on a socket.

    `at_once`: a job is looked at as soon as it is submitted, and not together with those that follow.
    """

    def __init__(self, folder: Path, account: int, *, cpus: int, at_once: bool) -> None:
        self._folder, self._account = folder, account
        self._cpus, self._parameters = cpus, _FOR_ONE if at_once else _FOR_MANY
        self._started: list[subprocess.Popen[bytes]] = []
        self._body: dict[str, Any] = {
            "job": {
                "name": "job",
                "current_working_directory": "/",
                "environment": {"PATH": "/usr/bin:/bin"},
                "tasks": 1,
                "cpus_per_task": 4,
            },
            "script": "#!/bin/sh\nsleep 1000\n",
        }

    @classmethod
    @contextmanager
    def open(cls, *, cpus: int = 4, at_once: bool = False) -> Iterator[Self]:
        """Start it; CannotError: something is missing."""
        missing = [name for name in _PROGRAMS if shutil.which(name, path=_path()) is None]
        if missing:
            raise CannotError(f"{', '.join(missing)} is missing (slurm-wlm, munge, slurmrestd)")
        if os.geteuid() != 0:
            raise CannotError("only root can start it")
        folder = Path(tempfile.mkdtemp(prefix="pai-slurm-"))
        peer = cls(folder, 65534, cpus=cpus, at_once=at_once)
        try:
            peer._start()
            yield peer
        finally:
            steps = [step for one in peer.processes for step in one.children(recursive=True)]
            # (the one job that runs outlives its node's daemon)
            steps += [one for one in psutil.process_iter(["name"]) if peer._is_step(one)]
            for each in {one for step in steps for one in (step, *step.children(recursive=True))}:
                with suppress(psutil.NoSuchProcess):
                    each.kill()
            for process in reversed(peer._started):
                process.terminate()
            for process in reversed(peer._started):
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def processes(self) -> list[psutil.Process]:
        """Return the processes that a submit needs."""
        return [psutil.Process(process.pid) for process in self._started]

    async def connect(
        self, protocol: Callable[[], asyncio.Protocol]
    ) -> tuple[asyncio.BaseTransport, asyncio.Protocol]:
        """Open a connection to slurmrestd."""
        loop = asyncio.get_running_loop()
        return await loop.create_unix_connection(protocol, str(self._folder / "rest" / "socket"))

    def request(self) -> tuple[str, bytes]:
        """Make a request that submits a job which has to wait."""
        return "job", http_request(f"/slurm/{self._version}/job/submit", self._body, {})

    def request_for(self, script: str) -> bytes:
        """Make a request that submits a job of one processor which runs a script."""
        job = {**self._body["job"], "cpus_per_task": 1, "standard_output": "/dev/null"}
        return http_request(f"/slurm/{self._version}/job/submit", {"job": job, "script": script}, {})

    def sbatch(self, script: Path) -> None:
        """Submit a script with `sbatch`; what it prints is lost."""
        answer = self._answer("sbatch", "--output=/dev/null", "--cpus-per-task=1", str(script))
        assert answer.returncode == 0, answer.stderr

    def unfinished(self) -> int:
        """Return how many jobs wait or run."""
        answer = self._answer("squeue", "--noheader", "--format=%i", "--states=PENDING,RUNNING,COMPLETING")
        assert answer.returncode == 0, answer.stderr
        return len(answer.stdout.split())

    def _start(self) -> None:
        folder, host = self._folder, socket.gethostname().partition(".")[0]
        folder.chmod(0o755)
        for name in ("munge", "state", "spool-n1", "rest"):
            (folder / name).mkdir(mode=0o755)
        os.chown(folder / "rest", self._account, self._account)
        key = folder / "munge" / "key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o600)
        port, node_port = free_ports(2)
        (folder / "slurm.conf").write_text(
            _CONFIGURATION.format(
                host=host,
                port=port,
                node_port=node_port,
                folder=folder,
                cpus=self._cpus,
                parameters=self._parameters,
            )
        )
        (folder / "cgroup.conf").write_text("")
        munge = folder / "munge"
        self._run(
            "munged",
            "-F",
            f"--socket={munge}/socket",
            f"--key-file={key}",
            f"--pid-file={munge}/pid",
            f"--log-file={munge}/log",
            f"--seed-file={munge}/seed",
            "--force",
        )
        self._until(lambda: (munge / "socket").exists())
        self._run("slurmctld", "-D", "-f", str(folder / "slurm.conf"), "-c")
        self._run("slurmd", "-D", "-N", "n1", "-f", str(folder / "slurm.conf"))
        self._until(lambda: self._answer("scontrol", "ping").returncode == 0)
        self._run(
            "slurmrestd",
            "-a",
            "rest_auth/local",
            "-s",
            "openapi/v0.0.38",
            f"unix:{folder}/rest/socket",
            as_nobody=True,
        )
        self._until(lambda: (folder / "rest" / "socket").exists())
        self._version = "v0.0.38"

    def _is_step(self, process: psutil.Process) -> bool:
        if process.info["name"] != "slurmstepd":
            return False
        with suppress(psutil.Error):
            return str(self._folder) in process.environ().get("SLURM_CONF", "")
        return False

    def _environ(self) -> dict[str, str]:
        return {"PATH": _path(), "SLURM_CONF": str(self._folder / "slurm.conf"), "LC_ALL": "C.UTF-8"}

    def _run(self, program: str, *words: str, as_nobody: bool = False) -> None:
        who: dict[str, Any] = (
            {"user": self._account, "group": self._account, "extra_groups": []} if as_nobody else {}
        )
        with (self._folder / f"{program}.out").open("wb") as out:
            self._started.append(
                subprocess.Popen(
                    [program, *words],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                    env=self._environ(),
                    cwd="/",
                    **who,
                )
            )

    def _answer(self, program: str, *words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run([program, *words], env=self._environ(), capture_output=True, check=False)

    def _until(self, there: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not there():
            dead = [one.args for one in self._started if one.poll() is not None]
            if dead or time.monotonic() > deadline:
                said = [path.read_text()[-500:] for path in self._folder.glob("*.out")]
                raise CannotError(f"it does not start: {dead} {said}")
            time.sleep(0.1)


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
