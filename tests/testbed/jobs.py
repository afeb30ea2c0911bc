"""Runs a job of alice's to its end on a real scheduler."""

from __future__ import annotations

from typing import Any

from pai_scheduler.client.rest import Client

from .scheduler import RunningScheduler


async def run_to_end(scheduler: RunningScheduler, config: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """Run a job to its end; give its state, and what each task has written."""
    name = config["jobName"]
    async with Client(scheduler.url, "token-of-alice") as alice:
        await alice.submit(config)
        async for event in alice.events("alice", name):
            if event["type"] == "ended":
                break
        state = (await alice.job("alice", name))["jobStatus"]["state"]
        logs = {
            f"{role['name']}-{index}": (await alice.log("alice", name, role["name"], index)).decode()
            for role in config["taskRoles"]
            for index in range(role["taskNumber"])
        }
    return state, logs
