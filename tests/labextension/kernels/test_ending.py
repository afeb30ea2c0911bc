"""What people read when a kernel has ended; of jobs, before a real scheduler."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from pai_labextension.kernels.job_spec import KernelEnd, died, ending_of, idle_ending, out_of_memory
from pai_scheduler.client.rest import Client
from tests.labextension.kernels.conftest import PATIENCE


def test_minutes_without_use_are_told_in_whole_ones_at_least_one():
    assert str(idle_ending(1800).message).startswith("Nobody used this kernel for 30 minutes:")
    assert str(idle_ending(3).message).startswith("Nobody used this kernel for 1 minute:")


def test_a_kernel_dies_of_a_signal_an_exit_code_or_want_of_memory():
    assert str(died(-11)) == "The kernel was ended by signal 11. What it knew is lost."
    assert str(died(3)) == "The kernel ended with exit code 3. What it knew is lost."
    assert "more than its 512 MB of memory" in str(out_of_memory(512))


async def ended(client: Client, command: str, *, stop_it: bool = False) -> KernelEnd | None:
    """Run a job to its end; return how that is told."""
    role = {"name": "kernel", "command": command, "memoryMB": 100}
    name = f"ending-{uuid.uuid4().hex[:8]}"
    await client.submit({"jobName": name, "image": "any", "retryCount": 0, "taskRoles": [role]})
    async with asyncio.timeout(PATIENCE):
        async for event in client.events("alice", name):
            if event["type"] == "running" and stop_it:
                assert await ending_of(client, "alice", await client.job("alice", name)) is None
                await client.stop("alice", name)
    return await ending_of(client, "alice", await client.job("alice", name))


async def test_a_job_that_fails_shows_the_last_lines_of_its_log_without_colours(alice: Client) -> None:
    lines = "for n in $(seq 20); do printf '\\033[31mline %d\\033[0m\\n' $n; done; exit 7"
    ending = await ended(alice, lines)
    assert ending is not None
    assert str(ending.message).startswith("The job of this kernel ended with exit code 7.")
    assert ending.log.splitlines() == [f"line {number}" for number in range(9, 21)]


async def test_an_end_that_somebody_wanted_shows_no_log(alice: Client) -> None:
    expected: dict[str, dict[str, Any]] = {
        "The job of this kernel was stopped.": {"command": "echo x; sleep 3600", "stop_it": True},
        "The kernel has ended.": {"command": "echo x"},
    }
    for sentence, job in expected.items():
        ending = await ended(alice, **job)
        assert ending is not None
        assert (str(ending.message), ending.log) == (sentence, "")
