"""Who may speak to whom, by TLS itself: real handshakes over sockets between all pairs of credentials."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import stat
from pathlib import Path

import pytest

from pai_scheduler.engine.swarm.certificates import Authority, Credentials
from pai_scheduler.engine.swarm.tunnel import AGENT_NAME, agent_tls, scheduler_tls

LAB, OTHER = Authority(b"of this lab"), Authority(b"of another lab")


async def talk(
    folder: Path, agent: Credentials, scheduler: ssl.SSLContext, server_hostname: str = AGENT_NAME
) -> tuple[bytes, list[bytes]]:
    """Connect to an agent and ask; return its answer (none: TLS ended it), and what its program heard."""
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(3))
        writer.write(b"yes")
        writer.close()

    tls = agent_tls(agent.write(folder / "agent"))
    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls) as server, asyncio.timeout(30):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1",
            server.sockets[0].getsockname()[1],
            ssl=scheduler,
            server_hostname=server_hostname if scheduler.check_hostname else None,
        )
        said = b""
        # (with TLS 1.3 who asks is told after its own handshake that it was refused)
        with contextlib.suppress(ssl.SSLError, ConnectionResetError):
            writer.write(b"may")
            said = await reader.read(3)
        writer.close()
        return said, heard


async def test_agent_and_scheduler_of_one_lab_speak(tmp_path: Path) -> None:
    tls = scheduler_tls(LAB.scheduler().write(tmp_path / "scheduler"))
    assert await talk(tmp_path, LAB.agent(), tls) == (b"yes", [b"may"])


async def test_a_scheduler_started_anew_or_elsewhere_with_the_same_secret_is_the_same(tmp_path: Path) -> None:
    again = Authority(b"of this lab")
    assert again.fingerprint == LAB.fingerprint != OTHER.fingerprint
    tls = scheduler_tls(again.scheduler().write(tmp_path / "scheduler"))
    assert await talk(tmp_path, LAB.agent(), tls) == (b"yes", [b"may"])


@pytest.mark.parametrize(
    "shown", [OTHER.scheduler(), LAB.agent(), OTHER.agent()], ids=["another lab's", "an agent's", "both"]
)
async def test_an_agent_hears_nothing_from_who_is_no_scheduler_of_its_lab(
    tmp_path: Path, shown: Credentials
) -> None:
    # it believes this agent, whatever that thinks of it
    believing = Credentials(shown.certificate, shown.key, LAB.scheduler().authority)
    tls = scheduler_tls(believing.write(tmp_path / "scheduler"))
    assert await talk(tmp_path, LAB.agent(), tls) == (b"", [])


async def test_an_agent_hears_nothing_from_who_shows_no_certificate(tmp_path: Path) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    assert await talk(tmp_path, LAB.agent(), tls) == (b"", [])


async def test_an_agent_speaks_no_older_tls(tmp_path: Path) -> None:
    tls = scheduler_tls(LAB.scheduler().write(tmp_path / "scheduler"))
    tls.minimum_version = tls.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        await talk(tmp_path, LAB.agent(), tls)


@pytest.mark.parametrize("shown", [OTHER.agent(), LAB.scheduler()], ids=["another lab's", "a scheduler's"])
async def test_a_scheduler_says_nothing_to_who_is_no_agent_of_its_lab(
    tmp_path: Path, shown: Credentials
) -> None:
    tls = scheduler_tls(LAB.scheduler().write(tmp_path / "scheduler"))
    believing = Credentials(shown.certificate, shown.key, LAB.agent().authority)
    with pytest.raises(ssl.SSLCertVerificationError):
        await talk(tmp_path, believing, tls)


async def test_a_scheduler_asks_for_the_name_of_an_agent(tmp_path: Path) -> None:
    tls = scheduler_tls(LAB.scheduler().write(tmp_path / "scheduler"))
    with pytest.raises(ssl.SSLCertVerificationError):
        await talk(tmp_path, LAB.agent(), tls, server_hostname="127.0.0.1")


def test_credentials_are_for_their_owners_eyes_only(tmp_path: Path) -> None:
    credentials = LAB.agent()
    file = credentials.write(tmp_path / "new")
    assert file.read_bytes() == credentials.bundle
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert credentials.key.decode() not in repr(credentials)
    assert LAB.agent().write(tmp_path / "new").read_bytes() != credentials.bundle
    assert list(file.parent.iterdir()) == [file]
