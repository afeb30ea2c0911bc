"""Program of a kernel job's task: starts the kernel when told to, and ends when it is idle for too long.

The job brings this file along, so it needs nothing of this project: Python 3.8 and pyzmq, which every image
with a Jupyter kernel for Python has. `serve FOLDER IDLE` is the job's command; `attach FOLDER` is run by the
notebook server through the SSH gateway, and passes on what both sides say: JSON, one object a line, over a
socket that only the task's own user can open. So the kernel's key and environment stand in no command line
and in no job.

Requests are `{"id": …, "do": "start" | "signal" | "keep" | "end", …}`, answers `{"id": …, "ok": …}` or
`{"id": …, "error": …}`. What happens is told to everybody who is attached, as `{"event": …}`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

#: Seconds for which a task without a kernel waits for somebody to start one, at first and after one died.
NEVER_STARTED, DIED = 600.0, 120.0
#: Seconds between the request to end and the signal that nothing survives.
TO_END = 5.0
#: Messages that do not say that somebody uses the kernel: front ends send them by themselves.
NOT_USED = {
    "kernel_info_request",
    "comm_info_request",
    "interrupt_request",
    "debug_request",
    "shutdown_request",
}
PORTS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")
DELIMITER = b"<IDS|MSG>"
SOCKET = "control"
#: Bytes that a request may have: an environment is the longest part of one.
MOST_BYTES = 8 * 2**20


class Activity:
    """Busy state and last activity of the kernel, from its IOPub messages. Times: `time.monotonic`."""

    def __init__(self, now: float) -> None:
        self.busy = False
        self.last = now

    def note(self, frames: list[bytes], now: float) -> bool:
        """Take a message of the IOPub channel; return whether the kernel began or ended its work with it."""
        try:
            at = frames.index(DELIMITER)
            header, parent, content = (json.loads(frames[at + place]) for place in (2, 3, 5))
        except (ValueError, IndexError):
            return False
        cause = parent.get("msg_type") if isinstance(parent, dict) else None
        if cause is None or cause in NOT_USED:
            return False
        self.last = now
        if header.get("msg_type") != "status":
            return False
        was, self.busy = self.busy, content.get("execution_state") == "busy"
        return was != self.busy

    def idle(self, now: float) -> float:
        """Return for how many seconds nobody has used the kernel."""
        return 0.0 if self.busy else max(0.0, now - self.last)


class Kernel:
    """One process of the kernel. `code`: as `subprocess` has it, after its end; `oom`: it lacked memory."""

    def __init__(self, process: asyncio.subprocess.Process, connection: dict[str, Any]) -> None:
        self.process = process
        self.connection = connection
        self.code: int | None = None
        self.oom = False
        self._over = asyncio.Event()
        self._killed_before = oom_kills()

    async def ended(self) -> None:
        """Wait for its end."""
        code = await self.process.wait()
        self.oom = code == -signal.SIGKILL and oom_kills() > self._killed_before
        self.code = code
        self._over.set()

    def signal(self, number: int) -> None:
        """Send a signal to the kernel and what it has started."""
        if self.code is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    async def end(self) -> None:
        """End it, by force if need be."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            self.signal(number)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._over.wait(), TO_END)


class Runner:
    """Serves those who are attached, and decides when the task ends. `limit`: seconds of idleness, 0: any."""

    def __init__(self, folder: str, limit: float) -> None:
        self._folder = folder
        self._limit = limit
        self._kernel: Kernel | None = None
        self._activity = Activity(time.monotonic())
        self._since = time.monotonic()
        self._attached: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._over: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def serve(self) -> int:
        """Run until the end; return the exit code."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._finish, 128 + signal.SIGTERM)
        path = Path(self._folder, SOCKET)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()  # of an attempt before
        server = await asyncio.start_unix_server(self._serve_one, path, limit=MOST_BYTES)
        watch = asyncio.ensure_future(self._watch())
        code = await self._over
        watch.cancel()
        server.close()
        if self._kernel is not None:
            await self._kernel.end()
        # the key is of no more use; where tasks share a machine, nobody else would remove it
        shutil.rmtree(self._folder, ignore_errors=True)
        return code

    def _finish(self, code: int) -> None:
        if not self._over.done():
            self._over.set_result(code)

    # ── those who are attached ────────────────────────────────────────────────────────────────────

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._attached.add(writer)
        try:
            self._say(writer, {"event": "hello", **self._state()})
            async for line in reader:
                request = json.loads(line)
                try:
                    answer = {"ok": await self._do(request)}
                except Exception as error:  # whatever it is, who asked has to know
                    answer = {"error": f"{type(error).__name__}: {error}"}
                self._say(writer, {"id": request.get("id"), **answer})
        except (ConnectionError, ValueError):
            pass
        finally:
            self._attached.discard(writer)
            self._since = time.monotonic()
            writer.close()

    def _say(self, writer: asyncio.StreamWriter, what: dict[str, Any]) -> None:
        if not writer.is_closing():
            writer.write(json.dumps(what).encode() + b"\n")

    def _tell(self, event: str) -> None:
        for writer in self._attached:
            self._say(writer, {"event": event, **self._state()})

    def _state(self) -> dict[str, Any]:
        kernel = self._kernel
        return {
            "kernel": None
            if kernel is None
            else {"connection": kernel.connection, "code": kernel.code, "oom": kernel.oom},
            "busy": self._activity.busy,
            "idle": self._activity.idle(time.monotonic()),
            "limit": self._limit,
        }

    async def _do(self, request: dict[str, Any]) -> Any:
        what = request["do"]
        if what == "start":
            return await self._start(request)
        if what == "signal":
            if self._kernel is not None:
                self._kernel.signal(int(request["number"]))
        elif what == "keep":
            self._activity.last = time.monotonic()
            self._tell("activity")
        elif what == "end":
            self._finish(0)
        else:
            raise ValueError(f"there is no {what!r}")
        return None

    # ── the kernel ────────────────────────────────────────────────────────────────────────────────

    async def _start(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._kernel is not None and self._kernel.code is None:
            raise RuntimeError("a kernel runs already")
        connection = {
            "transport": "tcp",
            "ip": "127.0.0.1",
            "signature_scheme": "hmac-sha256",
            "key": request["key"],
            "kernel_name": request["name"],
            **free_ports(),
        }
        path = Path(self._folder, "connection.json")
        path.touch(0o600)
        path.write_text(json.dumps(connection))
        wanted = request["cwd"]
        cwd = wanted if Path(wanted).is_dir() else os.environ.get("PAI_WORK_DIR", "/")
        argv, env = with_what_is_here(request["argv"], request["env"])
        process = await asyncio.create_subprocess_exec(
            *(word.replace("{connection_file}", str(path)) for word in argv),
            cwd=cwd,
            env={**os.environ, **env},
            stdin=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        self._kernel = kernel = Kernel(process, connection)
        self._activity = Activity(time.monotonic())
        for work in (self._note_end(kernel), self._listen(kernel)):
            task = asyncio.ensure_future(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return {"connection": connection, "cwd": cwd}

    async def _note_end(self, kernel: Kernel) -> None:
        await kernel.ended()
        self._since = time.monotonic()
        self._activity.busy = False
        self._tell("exited")

    async def _listen(self, kernel: Kernel) -> None:
        import zmq.asyncio

        context = zmq.asyncio.Context.instance()
        with context.socket(zmq.SUB) as iopub:
            iopub.linger = 0
            iopub.connect(f"tcp://127.0.0.1:{kernel.connection['iopub_port']}")
            iopub.subscribe(b"")
            while kernel.code is None:
                if await iopub.poll(1000) and self._activity.note(
                    await iopub.recv_multipart(), time.monotonic()
                ):
                    self._tell("activity")

    # ── the end ───────────────────────────────────────────────────────────────────────────────────

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(min(1.0, self._limit / 4) if self._limit else 1.0)
            now = time.monotonic()
            if self._kernel is None or self._kernel.code is not None:
                patience = NEVER_STARTED if self._kernel is None else DIED
                if not self._attached and now - self._since > patience:
                    print("No notebook server asks for a kernel here: the task ends.", flush=True)
                    self._finish(0)
            elif self._limit and self._activity.idle(now) > self._limit:
                print(f"Nobody has used the kernel for {self._limit:.0f} s: it ends.", flush=True)
                self._tell("idle")
                self._finish(0)


def with_what_is_here(argv: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """Leave out the person's own packages where this task has not the home that they are in."""
    own = env.get("VIRTUAL_ENV", "")
    programs = str(Path(own, "bin"))
    if not own or Path(programs).is_dir():
        return argv, env
    env = {name: value for name, value in env.items() if name != "VIRTUAL_ENV"}
    if "PATH" in env:
        env["PATH"] = ":".join(folder for folder in env["PATH"].split(":") if folder != programs)
    return ([sys.executable, *argv[1:]] if argv[0] == str(Path(programs, "python")) else argv), env


def free_ports() -> dict[str, int]:
    """Find a port for each channel of a kernel, on the loopback address."""
    found = {name: socket.socket() for name in PORTS}
    try:
        for one in found.values():
            one.bind(("127.0.0.1", 0))
        return {name: one.getsockname()[1] for name, one in found.items()}
    finally:
        for one in found.values():
            one.close()


def oom_kills(groups: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> int:
    """Count what the kernel of the machine has ended in this task for want of memory; 0: that is not told.

    `groups`: where control groups are mounted, of version 2, or of version 1 in a folder for each controller.
    """
    places = [groups, f"{groups}/memory"]
    with contextlib.suppress(OSError), open(own) as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if controllers in ("", "memory"):
                places.append(places[bool(controllers)] + path)
    counts = [0]
    for place in places:
        for name in ("memory.events", "memory.oom_control"):
            with contextlib.suppress(OSError), open(Path(place, name)) as file:
                counts += [int(words[1]) for words in map(str.split, file) if words[0] == "oom_kill"]
    return max(counts)


def attach(folder: str) -> None:
    """Pass on what both sides say, until one of them ends."""
    with socket.socket(socket.AF_UNIX) as control:
        control.connect(str(Path(folder, SOCKET)))
        while True:
            ready, _, _ = select.select([0, control.fileno()], [], [])
            if control.fileno() in ready:
                data = control.recv(65536)
                if not data:
                    return
                while data:
                    data = data[os.write(1, data) :]
            if 0 in ready:
                data = os.read(0, 65536)
                if not data:
                    return
                control.sendall(data)


async def serve(folder: str, limit: float) -> int:
    """Be the command of the job."""
    return await Runner(folder, limit).serve()


def main(arguments: list[str]) -> int:
    """Run one of the two commands."""
    if arguments[0] == "attach":
        attach(arguments[1])
        return 0
    try:
        import zmq  # noqa: F401 - its absence is told before anybody waits for a kernel
    except ImportError:
        print(
            f"{sys.executable} has no pyzmq: a kernel needs an image with a Jupyter kernel in it.", flush=True
        )
        return 1
    return asyncio.run(serve(arguments[1], float(arguments[2])))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
