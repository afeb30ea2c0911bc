"""Tasks that are logged into: what the scheduler gives them, and a client that checks whom it reaches."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import asyncssh

from pai_scheduler.engine.protocol import Engine, Launch, SshEndpoint
from pai_scheduler.job.task import TaskRef
from pai_scheduler.ssh.keys import JobKeys, KeyPair
from pai_scheduler.ssh.task_files import HOST_KEY_ALIAS, Peer, own_port, own_server_files, ssh_files
from pai_scheduler.testing.ports import free_port

KEYS = JobKeys(b"a secret of the tests")


def server_files(task: TaskRef) -> Mapping[str, bytes]:
    """Return what an engine with a server of our own gives it."""
    return own_server_files(KEYS.identity(task.job_id), KEYS.host(task.job_id))


def with_ssh(*launches: Launch, own_server: bool = False) -> list[Launch]:
    """Return the tasks of one gang, prepared, what the scheduler gives them: keys, peers, and a port each.

    `own_server`: the engine has a server of our own, and tasks get no keys at their launch.
    """
    ports = {launch.task: free_port() for launch in launches}
    if own_server:
        return [replace(launch, ssh_port=ports[launch.task]) for launch in launches]
    job_id = launches[0].task.job_id
    peers = {launch.task.hostname: Peer(launch.address, ports[launch.task]) for launch in launches}
    files = ssh_files(KEYS.identity(job_id), KEYS.host(job_id), peers)
    return [
        replace(
            launch,
            files={**launch.files, **files, **own_port(ports[launch.task])},
            ssh_port=ports[launch.task],
        )
        for launch in launches
    ]


async def log_in(
    way: SshEndpoint,
    job_id: str,
    *,
    user: str = "root",
    identity: KeyPair | None = None,
    host: KeyPair | None = None,
) -> asyncssh.SSHClientConnection:
    """Log in with the job's key where only its host key is accepted, unless told otherwise."""
    known = f"{HOST_KEY_ALIAS} {(host or KEYS.host(job_id)).public}\n"
    async with asyncio.timeout(30):
        return await asyncssh.connect(
            way.host,
            way.port,
            username=user,
            client_keys=[asyncssh.import_private_key((identity or KEYS.identity(job_id)).private)],
            known_hosts=known.encode(),
            host_key_alias=HOST_KEY_ALIAS,
            agent_path=None,
            config=None,
        )


async def run_in(
    engine: Engine, launch: Launch, command: str, **options: Any
) -> asyncssh.SSHCompletedProcess:
    """Run a command in a running task over SSH."""
    way = await engine.ssh_endpoint(launch.task)
    async with await log_in(way, launch.task.job_id) as connection:
        ran = await connection.run(command, timeout=30, **options)
    return ran
