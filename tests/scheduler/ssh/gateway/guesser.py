"""Tries wrong tokens from one address, many at once, and waits for no late answer.

`python guesser.py PORT ADDRESS TIMES`
"""

from __future__ import annotations

import asyncio
import sys

import asyncssh

AT_ONCE = 30
#: Seconds after which one hangs up: a right token is answered by then, one would think
PATIENCE = 0.2


class Guesses(asyncssh.SSHClient):
    """Gives another token each time it is asked."""

    tried = 0
    let_in = False

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        self._connection = conn

    def password_auth_requested(self) -> str:
        Guesses.tried += 1
        asyncio.get_running_loop().call_later(PATIENCE, self._connection.abort)
        return f"guess {Guesses.tried}"

    def auth_completed(self) -> None:
        Guesses.let_in = True


async def guess(port: int, address: str, times: int) -> None:
    options = asyncssh.SSHClientConnectionOptions(
        username="alice",
        client_factory=Guesses,
        client_keys=None,
        known_hosts=None,
        config=None,
        agent_path=None,
        kbdint_auth=False,
        kex_algs=["curve25519-sha256"],
    )

    async def one() -> None:
        while Guesses.tried < times:
            try:
                connection = await asyncssh.connect(
                    "127.0.0.1", port, local_addr=(address, 0), options=options, config=None
                )
            except (asyncssh.Error, OSError):
                continue
            connection.abort()
            if Guesses.let_in:
                raise AssertionError("let in")

    await asyncio.gather(*(one() for _ in range(AT_ONCE)))
    print(Guesses.tried)


if __name__ == "__main__":
    asyncio.run(guess(int(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
