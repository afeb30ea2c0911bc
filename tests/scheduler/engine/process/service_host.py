"""A stand-in for the service in its own process, so that tests can kill it: `… DATA_DIR JOB COUNT COMMAND`.

It says `ready`, launches the tasks of a job all at once, says `launched`, and waits to be killed.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.testing.lab import Lab, make_task


async def main() -> None:
    data_dir, job, count, command = sys.argv[1:]
    engine = ProcessEngine(Path(data_dir))
    await engine.start()
    lab = await Lab.over(engine, "image")
    print("ready", flush=True)
    tasks = [make_task(index=index, job_id=job) for index in range(int(count))]
    launches = await lab.prepare(*(lab.make(command, task=task) for task in tasks))
    await asyncio.gather(*(engine.launch(launch) for launch in launches))
    print("launched", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
