"""VS Code in a browser: starts code-server in a task whose image has it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from http import HTTPStatus

import asyncssh

from pai_labextension.base_handlers import RefusedError
from pai_labextension.messages import msg

#: Seconds after which a task that does not answer is given up; the script waits for less.
_START_SECONDS = 60.0
_SHELL = "exec sh"
#: Starts code-server once in a task, and prints `<its port> <the work folder>`. It listens where the task
#: alone reaches it, so that it asks for no password of its own.
_SCRIPT = r"""
command -v code-server >/dev/null 2>&1 || exit 90
umask 077
place="${HOME:-/}/.cache/pai-code-server/${PAI_CONTAINER_ID:-task}"
mkdir -p "$place" 2>/dev/null || place=$(mktemp -d) || exit 91
runs() { pid=$(cat "$place/pid" 2>/dev/null) && kill -0 "$pid" 2>/dev/null; }
cd "${PAI_WORK_DIR:-.}" || exit 91
if ! runs; then
  nohup code-server --auth none --bind-addr 127.0.0.1:0 --disable-telemetry --disable-update-check \
    </dev/null >"$place/log" 2>&1 &
  echo $! >"$place/pid"
fi
says='.*HTTP server listening on http://127\.0\.0\.1:\([0-9][0-9]*\).*'
turn=0
while [ $turn -lt 45 ]; do
  port=$(sed -n "s|$says|\1|p" "$place/log" | tail -n 1)
  if [ -n "$port" ]; then printf '%s %s' "$port" "$PWD"; exit 0; fi
  if ! runs; then tail -n 5 "$place/log" >&2; exit 92; fi
  turn=$((turn + 1))
  sleep 1
done
exit 93
"""
_NOT_THERE = 90


@dataclass(frozen=True, slots=True)
class Done:
    """How a script ended, and what it said; `status` None: nobody knows."""

    status: int | None
    stdout: str
    stderr: str


async def start_code_server(connection: asyncssh.SSHClientConnection) -> tuple[int, str]:
    """Start it, unless it runs; return its port and the folder to open. RefusedError, asyncssh.Error."""
    try:
        async with asyncio.timeout(_START_SECONDS):
            done = await run_script(connection, _SCRIPT)
    except TimeoutError:
        done = Done(None, "", "")
    port, _, folder = done.stdout.partition(" ")
    if done.status == 0 and port.isdecimal():
        return int(port), folder
    if done.status == _NOT_THERE:
        raise RefusedError(
            HTTPStatus.CONFLICT,
            msg(
                "There is no code-server in this task. Take an image that has it, or install it in the task: "
                "https://coder.com/docs/code-server/install"
            ),
        )
    reason = done.stderr or msg("it says nothing")
    raise RefusedError(HTTPStatus.CONFLICT, msg("code-server does not start: {reason}", reason=reason))


async def run_script(connection: asyncssh.SSHClientConnection, script: str) -> Done:
    """Run lines of a shell, which are read by it and no part of any command line."""
    result = await connection.run(_SHELL, input=script, encoding="utf-8", errors="replace")
    return Done(result.exit_status, str(result.stdout or "").strip(), str(result.stderr or "").strip())
