"""What each process loads when it starts: modules of ours, and libraries, no more than a list allows.

Small processes are many: one supervisor for each task, one SSH server in each. What they load they load each
time, and hold in memory.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

_HERE = ("pai_scheduler", "pai_spawner", "pai_labextension")

#: A process by the module that it starts with, how many modules of ours it may load, and which libraries.
BUDGETS = {
    # many of them run at once
    "pai_scheduler.engine.process.fork_server": (8, ""),
    "pai_scheduler.engine.process.supervisor": (7, ""),
    "pai_scheduler.ssh.runtime.process.program": (2, "asyncio"),
    "pai_labextension.singleuser": (4, "babel"),
    "pai_labextension.extension": (
        14,
        "asyncio jsonschema jupyter_client jupyter_server prometheus_client tornado yaml zmq",
    ),
    # they run alone in a task, where nothing of ours is installed
    "pai_scheduler.client.calls.runner": (1, ""),
    "pai_scheduler.distributed.launch": (1, ""),
    "pai_labextension.kernels.runner": (1, "asyncio"),
    "pai_labextension.runs.runner": (1, "asyncio"),
    # a person waits for them
    "pai_scheduler.client.cli.program": (6, "asyncio babel"),
    "pai_scheduler.client.rest": (8, "babel httpx msgspec"),
    # one of each for a scheduler, or for a node
    "pai_scheduler.ssh.gateway.__main__": (31, "asyncio asyncssh babel cryptography httpx msgspec"),
    "pai_scheduler.workers.file_server.__main__": (46, "asyncio babel msgspec requests tornado"),
    "pai_scheduler.workers.tunnel_server.__main__": (30, "asyncio babel msgspec"),
    "pai_scheduler.engine.agent.__main__": (55, "aiodocker aiohttp asyncio babel msgspec tornado"),
    "pai_scheduler.server.doctor.node_probe": (
        22,
        "aiodocker aiohttp asyncio babel cryptography docker msgspec requests yaml",
    ),
}

#: What takes long to load or much memory: what a process may not have of it, it imports late.
_LIBRARIES = {name for _, names in BUDGETS.values() for name in names.split()} | {
    "IPython",
    "hdfs",
    "ipywidgets",
    "jupyterhub",
    "sqlalchemy",
}

_PROGRAM = """
import importlib, sys
importlib.import_module(sys.argv[1])
# (a package's own file holds a sentence)
print(*(name for name, module in sys.modules.items() if not hasattr(module, "__path__")))
print(*{name.partition(".")[0] for name in sys.modules})
"""


@pytest.mark.parametrize("entry", BUDGETS)
def test_a_process_loads_no_more_than_its_budget(entry: str) -> None:
    most, libraries = BUDGETS[entry]
    command = [sys.executable, "-c", _PROGRAM, entry]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    modules, loaded = (line.split() for line in done.stdout.splitlines())
    own = sorted(name for name in modules if name.partition(".")[0] in _HERE)
    assert own
    assert len(own) <= most, "\n".join(own)
    assert _LIBRARIES.intersection(loaded) <= set(libraries.split())
