"""A real IPython kernel with the magics, and a real scheduler behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.testbed.scheduler import clean_environ
from tests.testbed.warm import WarmScheduler

#: Seconds; generous: this machine may be busy.
PATIENCE = 120.0


@dataclass
class Ran:
    """What a cell wrote, and how it ended."""

    out: str = ""
    err: str = ""
    error: str = ""
    traceback: str = ""
    results: list[str] = field(default_factory=list)
    #: what is drawn, as text; a bar as it is in the beginning
    displays: list[str] = field(default_factory=list)


class Kernel:
    """Runs cells; `on_output` and `answer` let a test act while one runs."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient) -> None:
        self.manager, self._client = manager, client

    def run(
        self,
        code: str,
        *,
        on_output: Callable[[str], None] = lambda _text: None,
        answer: str | None = None,
    ) -> Ran:
        ran = Ran()

        def hear(message: dict[str, Any]) -> None:
            content = message["content"]
            match message["msg_type"]:
                case "stream":
                    if content["name"] == "stdout":
                        ran.out += content["text"]
                    else:
                        ran.err += content["text"]
                    on_output(content["text"])
                case "error":
                    ran.error, ran.traceback = content["ename"], "\n".join(content["traceback"])
                case "display_data":
                    ran.displays.append(content["data"]["text/plain"])
                case "execute_result":
                    ran.results.append(content["data"]["text/plain"])

        self._client.execute_interactive(
            code,
            allow_stdin=answer is not None,
            stdin_hook=lambda _asked: self._client.input(answer or ""),
            output_hook=hear,
            timeout=PATIENCE,
        )
        return ran


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmScheduler]:
    running = WarmScheduler(tmp_path_factory.mktemp("scheduler"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def kernel(scheduler: WarmScheduler, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    """Start a kernel in which the extension is loaded."""
    folder: Path = tmp_path_factory.mktemp("kernel")
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel(
        env=clean_environ(
            {
                "PAI_API_URL": scheduler.url,
                "PAI_TOKEN": "token-of-alice",
                "PAI_LOCALE": "en",
                "IPYTHONDIR": str(folder / "ipython"),
                "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
            }
        ),
        cwd=str(folder),
    )
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=PATIENCE)
        made = Kernel(manager, client)
        loaded = made.run("%load_ext pai_labextension\n%colors nocolor")
        assert not loaded.error, loaded.traceback
        yield made
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
