"""A process with a Docker engine, for tests to kill: `DOCKER_HOST DATA_DIR IMAGE JOB COMMAND`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pai_scheduler.engine.docker import DockerEngine
from tests.scheduler.engine.lab import Lab, make_task


async def main() -> None:
    host, data_dir, image, job, command = sys.argv[1:]
    engine = DockerEngine(Path(data_dir), host=host)
    await engine.start()
    lab = await Lab.over(engine, image)
    await lab.start(command, task=make_task(job_id=job))
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
