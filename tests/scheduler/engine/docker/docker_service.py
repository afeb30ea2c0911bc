"""A process with a Docker engine, for tests to kill: `DOCKER_HOST DATA_DIR IMAGE JOB COMMAND LOG_MB`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pai_scheduler.cluster.definition import LogKeeping
from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.docker.settings import DockerSettings
from pai_scheduler.testing.lab import Lab, make_task


async def main() -> None:
    host, data_dir, image, job, command, log_mb = sys.argv[1:]
    logs = LogKeeping(max_mb_per_task=int(log_mb))
    engine = DockerEngine(Path(data_dir), DockerSettings(host=host, logs=logs))
    await engine.start()
    lab = await Lab.over(engine, image)
    await lab.start(command, task=make_task(job_id=job))
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
