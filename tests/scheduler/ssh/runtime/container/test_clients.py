"""Programs that nobody here wrote enter a task: PuTTY's, lftp, Paramiko, and what editors do."""

from __future__ import annotations

import base64
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest

from pai_scheduler.testing.ports import free_port
from tests.scheduler.ssh.runtime.container.boxes import (
    PATIENCE,
    PORT,
    Box,
    Boxes,
    Setting,
    eventually,
    listens,
    run,
)
from tests.testbed.images import DEBIAN


@pytest.fixture(params=["bare", "least"])
def strange(request: pytest.FixtureRequest, boxes: dict[str, Box]) -> Box:
    """Return the two kinds that are least like a machine."""
    return boxes[request.param]


@pytest.fixture
def ppk(strange: Box, tmp_path: Path) -> list[str]:
    """Return the options of PuTTY's programs, with the job's key as they have keys."""
    key, host = tmp_path / "key.ppk", (strange.keys / "known_hosts").read_text().split(" ", 1)[1]
    made = run("puttygen", str(strange.keys / "identity"), "-O", "private", "-o", str(key))
    assert made.returncode == 0, made.stderr
    fingerprint = run("ssh-keygen", "-lf", "/dev/stdin", input=host).stdout.split()[1]
    return ["-batch", "-P", str(PORT), "-i", str(key), "-hostkey", fingerprint]


def test_plink_runs_commands(strange: Box, ppk: list[str]) -> None:
    done = run("plink", "-ssh", *ppk, f"root@{strange.address}", "cat; pwd; exit 6", input="said\n")
    assert (done.returncode, done.stdout) == (6, "said\n/pai\n")


def test_psftp_carries_files(strange: Box, ppk: list[str], tmp_path: Path) -> None:
    (tmp_path / "sent").write_bytes(b"psftp\0" * 5000)
    batch = tmp_path / "batch"
    batch.write_text(f"pwd\nput {tmp_path}/sent by-psftp\nget by-psftp {tmp_path}/back\nrm by-psftp\n")
    done = run("psftp", *ppk, "-b", str(batch), f"root@{strange.address}")
    assert done.returncode == 0, done.stderr
    assert "/pai" in done.stdout
    assert (tmp_path / "back").read_bytes() == b"psftp\0" * 5000


def test_lftp_mirrors_a_folder(strange: Box, tmp_path: Path) -> None:
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "deep" / "file").write_bytes(b"lftp" * 5000)
    connect = " ".join(["ssh", "-a", "-x", *strange.options])
    done = run(
        "lftp", "-c",
        f'set sftp:connect-program "{connect}"; open -u root, sftp://{strange.address}; '
        f"mirror -R {tmp_path}/tree by-lftp; mirror by-lftp {tmp_path}/back; rm -r by-lftp",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "back" / "deep" / "file").read_bytes() == b"lftp" * 5000


@pytest.fixture
def paramiko_client(strange: Box) -> Iterator[paramiko.SSHClient]:
    """Return a connection of Paramiko's to a host that it knows."""
    kind, key = (strange.keys / "known_hosts").read_text().split()[1:3]
    assert kind == "ssh-ed25519"
    client = paramiko.SSHClient()
    host_key = paramiko.Ed25519Key(data=base64.b64decode(key))
    client.get_host_keys().add(f"[{strange.address}]:{PORT}", kind, host_key)
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    client.connect(
        strange.address, PORT, "root", key_filename=str(strange.keys / "identity"),
        look_for_keys=False, allow_agent=False, timeout=PATIENCE,
    )  # fmt: skip
    yield client
    client.close()


def test_paramiko_runs_commands_and_carries_files(paramiko_client: paramiko.SSHClient) -> None:
    _, stdout, stderr = paramiko_client.exec_command("echo out; echo err >&2; exit 8", timeout=PATIENCE)
    assert (stdout.read(), stderr.read()) == (b"out\n", b"err\n")
    assert stdout.channel.recv_exit_status() == 8
    files = paramiko_client.open_sftp()
    with files.open("by-paramiko", "wb") as file:
        file.write(b"x" * 100_000)
    assert files.stat("by-paramiko").st_size == 100_000
    assert files.normalize(".") == "/pai"
    files.remove("by-paramiko")


def test_the_steps_of_vs_code_work(boxes: dict[str, Box]) -> None:
    """A script on the stdin of a shell without a terminal starts a server that stays, to be reached.

    As in the log of its extension Remote-SSH: the server is unpacked under the home by tar, started by nohup,
    and said between two marks; it listens on 127.0.0.1, and outlives the connection for the next one.
    """
    box = boxes["debian"]
    server = "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=0, bind='127.0.0.1')"
    script = f"""
unset HISTFILE
uname -rsv >/dev/null && getconf LONG_BIT && command -v tar >/dev/null || exit 12
mkdir -p ~/.vscode-server/bin && cd ~/.vscode-server/bin
nohup python3 -u -c "{server}" > .log 2>&1 < /dev/null &
for i in $(seq 100); do grep -q 'port [0-9]' .log && break; sleep 0.1; done
echo "a1b2: start"
echo "listeningOn==$(sed -n 's/.* port \\([0-9]*\\).*/\\1/p' .log)=="
echo "a1b2: end"
"""
    here = free_port()
    first = box.ssh("sh", options=("-T", "-D", str(here)), input=script)
    found = re.search(r"^64\na1b2: start\nlisteningOn==(\d+)==\na1b2: end$", first.stdout, re.M)
    assert found, first
    again = box.start_ssh("echo up; cat", options=("-T", f"-L{here}:127.0.0.1:{found[1]}"))
    try:
        assert again.stdout is not None
        assert again.stdout.readline() == "up\n"
        with socket.create_connection(("127.0.0.1", here), timeout=PATIENCE) as browser:
            browser.sendall(b"HEAD / HTTP/1.0\r\n\r\n")
            assert browser.recv(12) == b"HTTP/1.0 200"
    finally:
        again.kill()
        again.communicate(timeout=PATIENCE)
        box.ssh("kill $(pidof python3)")


def test_the_steps_of_pycharm_work(boxes: dict[str, Box], tmp_path: Path) -> None:
    """A project goes up by SFTP, the interpreter there is asked who it is, and runs with its output read."""
    box = boxes["read-only"]
    (tmp_path / "main.py").write_text(
        "import os, sys, time\nprint('step 1', flush=True)\nsys.stdin.readline()\n"
        "print(os.environ['PAI_TASK_INDEX'], os.getcwd(), flush=True)\nsys.exit(5)\n"
    )
    batch = tmp_path / "batch"
    batch.write_text(f"mkdir /pai/project\ncd /pai/project\nput {tmp_path}/main.py\nchmod 644 main.py\n")
    assert run("sftp", *box.options, "-b", str(batch), f"root@{box.address}").returncode == 0
    asked = box.ssh("python3 -c 'import sys; print(sys.version_info[0])'")
    assert asked.stdout == "3\n"
    runner = box.start_ssh("cd /pai/project; env PYTHONUNBUFFERED=1 python3 -u /pai/project/main.py")
    assert runner.stdout is not None
    assert runner.stdout.readline() == "step 1\n"
    rest, _ = runner.communicate("\n", timeout=PATIENCE)
    assert (rest, runner.returncode) == ("0 /pai/project\n", 5)


def test_an_agent_is_forwarded(debian: Box) -> None:
    """`ssh -A`: a key that only the client has is used from within the task."""
    agent = run(
        "ssh-agent", "sh", "-c",
        'ssh-add -q "$1" && shift && exec "$@"', "sh", str(debian.keys / "identity"),
        "ssh", "-A", *debian.options, f"root@{debian.address}", "ssh-add -l",
    )  # fmt: skip
    assert "ED25519" in agent.stdout, agent


def test_many_sessions_share_a_connection(more_boxes: Boxes, tmp_path: Path) -> None:
    box = more_boxes.make({"one": Setting(DEBIAN)})["one"]
    eventually(lambda: listens(box.address))
    shared = f"-oControlPath={tmp_path / 'control'}"
    clients = [box.start_ssh("cat", options=(shared, "-oControlMaster=yes"))]
    try:
        eventually((tmp_path / "control").exists)
        # all at the port of the master's connection
        ask_for_port = 'echo "${SSH_CONNECTION#* }"; cat'
        clients += [box.start_ssh(ask_for_port, options=(shared,)) for _ in range(30)]
        said = set()
        for client in clients[1:]:
            assert client.stdout is not None
            said.add(client.stdout.readline().split()[0])
        assert len(said) == 1
        for client in reversed(clients):
            assert client.communicate(timeout=PATIENCE) == ("", "")
    finally:
        for client in clients:
            client.kill()
            client.communicate(timeout=PATIENCE)
