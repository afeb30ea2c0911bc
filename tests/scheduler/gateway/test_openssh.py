"""OpenSSH's own programs over the gateway: what they do with a server directly, they do here."""

from __future__ import annotations

import os
from pathlib import Path

from .conftest import Gate, run


async def test_a_command_has_its_output_its_errors_and_its_exit_code(gate: Gate) -> None:
    ran = await run(*gate.ssh("echo out; echo wrong >&2; exit 7"))
    assert (ran.code, ran.out, ran.error) == (7, b"out\n", "wrong\n")


async def test_every_byte_passes_both_ways_to_the_end_of_the_input(gate: Gate) -> None:
    sent = os.urandom(3_000_000) + bytes(range(256))
    ran = await run(*gate.ssh("cat"), send=sent)
    assert ran.code == 0
    assert ran.out == sent


async def test_a_signal_that_ends_a_command_is_told(gate: Gate) -> None:
    ran = await run(*gate.ssh("kill -TERM $$"))
    assert ran.code == 255
    assert ran.out == b""


async def test_sftp_puts_and_gets(gate: Gate, tmp_path: Path) -> None:
    sent = tmp_path / "sent"
    sent.write_bytes(os.urandom(5_000_000))
    batch = f"put {sent} {tmp_path}/there\nget {tmp_path}/there {tmp_path}/back\n"
    command = ["sftp", *gate.options, "-P", str(gate.port), "-b", "-", "alice+train+worker-0@127.0.0.1"]
    ran = await run(*command, send=batch.encode())
    assert ran.code == 0, ran.error
    assert (tmp_path / "back").read_bytes() == sent.read_bytes()
