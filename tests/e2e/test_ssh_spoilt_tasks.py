"""Tasks that spoil their own way in: clients are told in a clean sentence, and others do not notice."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncssh
import pytest

from .ssh_house import House, eventually, web_job

LISTENER = (
    r"for p in /proc/[0-9]*; do ! grep -q '\[listener\]' $p/cmdline 2>/dev/null || kill ${p#/proc/}; done"
)

#: Takes the SSH port, and says what it is told to say, to everybody.
POSER = """
import socket, sys, threading, time
server = socket.create_server(("", int(sys.argv[1])))
open("/tmp/posing", "w").close()
words = sys.argv[2].encode().decode("unicode_escape").encode("latin-1")
def say(guest):
    try:
        guest.sendall(words)
        while sys.argv[3] == "endless":
            guest.sendall(words * 100)
        guest.recv(100000)
        time.sleep(100000)
    except OSError:
        pass
while True:
    threading.Thread(target=say, args=(server.accept()[0],), daemon=True).start()
"""


@dataclass(frozen=True)
class Rogue:
    """A job of bob's that spoils its own way in."""

    house: House
    name: str
    container: str
    port: str

    def do(self, script: str) -> None:
        """Do it."""
        self.house.do(self.container, script)

    def refusal(self) -> str:
        """Return what is said to somebody who would enter; it is one line of plain text, and short."""
        ran = self.house.ssh(f"bob+{self.name}", "echo in")
        assert (ran.code, ran.out) == (255, "")
        assert ran.error.endswith("\n")
        assert ran.error[:-1].isprintable(), ran.error
        assert len(ran.error) < 1000
        # the page that shows it has the same
        said = self.house.info("bob", self.name)["containers"][0]["off"]
        assert said is None or (said.isprintable() and len(said) < 1000)
        self.house.works()
        return ran.error


@pytest.fixture
def rogue(house: House, request: pytest.FixtureRequest) -> Iterator[Rogue]:
    """Return one that can still be entered."""
    name = f"rogue-{zlib.crc32(request.node.name.encode())}"
    house.begin("bob", web_job(name, house.image))
    ran = house.ssh(f"bob+{name}", "cat /pai-job/ssh_port")
    assert ran.code == 0, ran.error
    yield Rogue(house, name, house.container("bob", name), ran.out.strip())
    house.end("bob", name)


def test_what_a_task_writes_of_its_server_is_a_clean_sentence_however_much_it_is(rogue: Rogue) -> None:
    state = "/run/pai/ssh"
    rogue.do(LISTENER)
    eventually(lambda: "The task's SSH server does not run" in rogue.refusal(), "its end is said")
    escapes = r"\033[2J\033]0;owned\007sshd \033[31mred\r\n\u202egnihton\033[0m"
    rogue.do(f"printf '{escapes}' > {state}/off")
    assert "owned" in rogue.refusal()
    rogue.do(f"truncate --size 1G {state}/off")
    rogue.refusal()
    # (who reads on after what was written reads zeros)
    rogue.do(f"yes sshd aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa | head -c 1M > {state}/off")
    rogue.do(f"truncate --size 1G {state}/off")
    assert "aaaaa" in rogue.refusal()
    rogue.do(f"rm {state}/off; mkfifo {state}/off")
    rogue.refusal()
    rogue.do(f"rm -rf {state}/off /run/pai/ssh; ln -s /dev/zero /run/pai/ssh")
    rogue.refusal()


def test_a_false_server_of_a_task_gets_no_login_and_delays_nobody(rogue: Rogue) -> None:
    rogue.do(LISTENER)
    rogue.do(f"cat > /tmp/poser.py <<'END'\n{POSER}\nEND\n/opt/pai/libexec/busybox true")
    for words, how in (
        ("SSH-2.0-poser\\r\\n", "once"),
        ("SSH-2.0-poser\\r\\n", "endless"),
        ("SSH-2.0-" + "x" * 1000, "endless"),
        ("HTTP/1.1 200 OK\\r\\n\\r\\n", "endless"),
    ):
        start = (
            f"rm -f /tmp/posing; setsid python3 /tmp/poser.py {rogue.port} '{words}' {how} >/dev/null 2>&1 &"
        )
        rogue.do(f"{start} echo $! > /tmp/poser.pid; until [ -e /tmp/posing ]; do sleep 0.05; done")
        rogue.refusal()
        rogue.do("kill -9 $(cat /tmp/poser.pid)")


def test_another_server_with_another_key_is_not_believed(rogue: Rogue) -> None:
    replace = f"""
        {LISTENER}
        cd /tmp && /opt/pai/tools/ssh-keygen -q -t ed25519 -N '' -f /tmp/other
        sed 's|^HostKey.*|HostKey /tmp/other|' /run/pai/ssh/sshd_config > /tmp/sshd_config
        until (: < /dev/tcp/127.0.0.1/{rogue.port}) 2>/dev/null; do
          NSS_WRAPPER_PASSWD=/run/pai/ssh/passwd NSS_WRAPPER_GROUP=/run/pai/ssh/group \\
            NSS_WRAPPER_SHADOW=/run/pai/ssh/shadow \\
            setsid /opt/pai/libexec/sshd -D -p {rogue.port} -f /tmp/sshd_config </dev/null >/dev/null 2>&1 &
          sleep 0.2
        done
    """
    rogue.do(replace)
    assert "cannot be reached" in rogue.refusal()


def test_other_keys_than_the_jobs_open_a_task_by_no_name_of_the_gateways(
    rogue: Rogue, tmp_path: Path
) -> None:
    stranger = tmp_path / "stranger"
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(stranger)
    stranger.chmod(0o600)
    line = key.export_public_key().decode().strip()
    rogue.do(f"echo '{line}' > /run/pai/ssh/ssh_authorized_keys")
    assert rogue.house.ssh(f"bob+{rogue.name}", "echo in", key=stranger).out == ""
    # who has the right key is told that the task does not take it any more
    assert "cannot be reached" in rogue.refusal()
