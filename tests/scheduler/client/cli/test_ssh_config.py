"""`pai ssh-config`, and who reads what it writes: ssh, scp, sftp, rsync, what VS Code and PyCharm do."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pai_scheduler.testing.ports import free_port
from tests.scheduler.client.cli.pai import environ_for
from tests.scheduler.conftest import run_job
from tests.testbed.machine import apt_install
from tests.testbed.scheduler import RunningScheduler
from tests.testbed.warm import run_pai_text

BYTES = os.urandom(3_000_000)


class Person:
    """alice at her own machine, with a home of her own."""

    def __init__(self, scheduler: RunningScheduler, home: Path) -> None:
        self.scheduler, self.home = scheduler, home
        self.config = home / ".ssh" / "pai" / "config"

    def pai(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        env = environ_for(self.scheduler, HOME=str(self.home), **environ)
        return run_pai_text(words, env)

    def run(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run ssh and the like; `-F` stands in for ~/.ssh/config, which ssh looks for in the real home."""
        program, *rest = words
        return subprocess.run(
            [program, "-F", self.config, *rest], input=stdin, capture_output=True, timeout=60
        )


@pytest.fixture(scope="module", autouse=True)
def _programs() -> None:
    apt_install({"ssh": "openssh-client", "rsync": "rsync", "curl": "curl"})


@pytest.fixture
def alice(entered: RunningScheduler, tmp_path: Path) -> Person:
    home = tmp_path / "home of alice"
    home.mkdir()
    person = Person(entered, home)
    assert person.pai("ssh-config", "--write").returncode == 0
    return person


def test_every_running_task_is_listed_and_the_files_are_hers_alone(alice: Person) -> None:
    lines = alice.config.read_text().splitlines()
    hosts = [line for line in lines if line.startswith("Host ")]
    assert {"Host pai-one-main-0 pai-one", "Host pai-two-main-0", "Host pai-two-main-1"} <= set(hosts)
    for path in (alice.home / ".ssh").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert (alice.home / ".ssh" / "config").read_text() == "Include pai/config\n"


def test_it_is_only_printed_where_nothing_else_is_said(entered: RunningScheduler, tmp_path: Path) -> None:
    person = Person(entered, tmp_path)
    printed = person.pai("ssh-config")
    assert "Host pai-one-main-0 pai-one\n" in printed.stdout
    assert "  IdentitiesOnly yes\n" in printed.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_lines_that_are_printed_log_in_even_if_ssh_does_not_read_that_home(alice: Person) -> None:
    printed = alice.pai("ssh-config", "--write").stdout.splitlines()
    (line,) = (line for line in printed if line.endswith(" pai-one"))
    ran = subprocess.run(
        [*shlex.split(line), "echo $PAI_JOB_NAME"], capture_output=True, text=True, timeout=60
    )
    assert ran.stdout == "one\n"


def test_a_key_that_opens_nothing_any_more_is_refused_without_a_question(alice: Person) -> None:
    (key,) = (alice.home / ".ssh" / "pai").glob("**/one.key")
    key.unlink()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    asked = alice.home / "asked"
    ask = alice.home / "ask"
    ask.write_text(f"#!/bin/sh\ntouch {shlex.quote(str(asked))}\n")
    ask.chmod(0o755)
    ran = subprocess.run(
        ["ssh", "-F", str(alice.config), "pai-one", "true"],
        env={**os.environ, "SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "Permission denied" in ran.stderr
    assert not asked.exists()


def test_plain_ssh_scp_sftp_and_rsync_use_it(alice: Person, tmp_path: Path) -> None:
    assert alice.run("ssh", "pai-two-main-1", "echo $PAI_TASK_INDEX; exit 4").returncode == 4
    assert alice.run("ssh", "pai-one", "echo $PAI_JOB_NAME").stdout == b"one\n"
    data = tmp_path / "data"
    data.write_bytes(BYTES)
    for mode in ("-O", "-s"):
        sent = alice.run("scp", "-q", mode, str(data), f"pai-one:sent{mode}")
        assert (sent.returncode, sent.stderr.replace(b"\n", b"")) == (0, b"")
        assert alice.run("ssh", "pai-one", f"cat sent{mode}").stdout == BYTES
    batch = f"put {data} by-sftp\nget by-sftp {tmp_path}/back\n".encode()
    assert alice.run("sftp", "-q", "-b", "-", "pai-one", stdin=batch).returncode == 0
    assert (tmp_path / "back").read_bytes() == BYTES
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "x y").write_text("x")
    shell = f"ssh -F '{alice.config}'"
    rsync = ["rsync", "-a", "--delete", "-e", shell, f"{tree}/", "pai-one:tree/"]
    ran = subprocess.run(rsync, capture_output=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert alice.run("ssh", "pai-one", "cd tree && find . -type f").stdout == b"./sub/x y\n"


def test_another_gateway_in_its_place_is_noticed(alice: Person, tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
    known = alice.home / ".ssh" / "pai" / "known_hosts"
    known.write_text(f"pai-gateway {other.with_suffix('.pub').read_text()}")
    ran = alice.run("ssh", "-o", "BatchMode=yes", "pai-one", "true")
    assert ran.returncode == 255
    assert b"Host key verification failed" in ran.stderr


def test_the_block_and_the_key_of_an_ended_job_vanish(alice: Person) -> None:
    run_job(alice.scheduler, "brief")
    alice.pai("ssh-config", "--write")
    key = alice.home / ".ssh" / "pai" / "keys" / "brief.key"
    assert "pai-brief" in alice.config.read_text()
    assert key.exists()
    alice.pai("stop", "brief")
    eventually(lambda: "pai-brief" not in alice.pai("ssh-config").stdout)
    alice.pai("ssh-config", "--write")
    assert "pai-brief" not in alice.config.read_text()
    assert "pai-one" in alice.config.read_text()
    assert not key.exists()


def test_what_was_written_can_be_removed(alice: Person) -> None:
    (alice.home / ".ssh" / "config").write_text("Include pai/config\nHost mine\n  User me\n")
    assert alice.pai("ssh-config", "--remove").returncode == 0
    assert [path.name for path in (alice.home / ".ssh").iterdir()] == ["config"]
    assert (alice.home / ".ssh" / "config").read_text() == "Host mine\n  User me\n"


@pytest.mark.parametrize("job", ["dots.and~tildes", "..x"])
def test_a_job_with_any_name_can_be_entered(alice: Person, job: str) -> None:
    run_job(alice.scheduler, job)
    assert alice.pai("ssh-config", "--write").returncode == 0
    line = next(text for text in alice.config.read_text().splitlines() if f"+{job}+main-0" in text)
    host = alice.config.read_text().split(line)[0].rsplit("Host ", 1)[1].split()[0]
    assert alice.run("ssh", host, "echo $PAI_JOB_NAME").stdout.decode() == f"{job}\n"
    alice.pai("stop", job)


def test_a_home_that_openssh_cannot_name_is_said(entered: RunningScheduler, tmp_path: Path) -> None:
    home = tmp_path / "100%"
    home.mkdir()
    refused = Person(entered, home).pai("ssh-config", "--write")
    assert refused.returncode == 1
    assert refused.stderr.endswith("cannot stand in a file of OpenSSH, and the files are to be there.\n")
    assert list(home.iterdir()) == []


def test_a_user_name_that_needs_quotes_works(entered: RunningScheduler, tmp_path: Path) -> None:
    wang = Person(entered, tmp_path)
    job = json.dumps(
        {"jobName": "w", "image": "any/x", "taskRoles": [{"name": "main", "command": "sleep 100000"}]}
    )
    token = "token-of-wang"
    (tmp_path / "job.json").write_text(job)
    wang.pai("submit", str(tmp_path / "job.json"), PAI_TOKEN=token)
    eventually(lambda: "pai-w" in wang.pai("ssh-config", PAI_TOKEN=token).stdout)
    wang.pai("ssh-config", "--write", PAI_TOKEN=token)
    ran = wang.run("ssh", "pai-w", "echo $PAI_USER_NAME")
    assert (ran.stderr, ran.stdout.decode()) == (b"", "王 小/明\n")


# what editors do


def test_vs_code_installs_its_server_and_finds_it_again(alice: Person) -> None:
    # Remote-SSH: a script on the standard input of `ssh -T -D port host sh`, which starts a server that
    # outlives the session and says its port; the editor reaches it through the proxy, the next one finds it
    server = (
        "import http.server as h; s = h.ThreadingHTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler)"
    )
    script = f"""
        cd "$PAI_WORK_DIR"
        if ! kill -0 "$(cat server.pid 2>/dev/null)" 2>/dev/null; then
            echo fresh
            nohup python3 -c "{server}; print(s.server_port, flush=True); s.serve_forever()" \
                > server.port 2> server.log < /dev/null &
            echo $! > server.pid
        fi
        while ! [ -s server.port ]; do sleep 0.05; done
        echo "listening on $(cat server.port)"
    """.encode()
    said = []
    for _ in range(2):
        proxy = free_port()
        with ssh_open(alice, "-T", "-D", f"127.0.0.1:{proxy}", "pai-one", "sh") as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(script)
            process.stdin.flush()
            lines: list[str] = []
            while not lines or not lines[-1].startswith("listening"):
                line = process.stdout.readline().decode()
                assert line, "the session ended"
                lines.append(line.strip())
            said.append(lines)
            port = int(lines[-1].split()[-1])
            page = subprocess.run(
                ["curl", "-sS", "--noproxy", "", "--socks5-hostname", f"127.0.0.1:{proxy}",
                 f"http://127.0.0.1:{port}/server.pid"],
                capture_output=True, timeout=60,
            )  # fmt: skip
            assert (page.returncode, page.stderr) == (0, b"")
            number = int(page.stdout)
            process.stdin.close()
    assert [lines[0] for lines in said] == ["fresh", said[0][-1]]
    assert number > 1
    alice.run("ssh", "pai-one", "kill $(cat server.pid)")


def test_pycharm_uploads_a_project_and_runs_it_with_the_interpreter_there(
    alice: Person, tmp_path: Path
) -> None:
    # deployment by SFTP, then the remote interpreter, whose output is shown as it is written
    project = tmp_path / "project"
    project.mkdir()
    (project / "data.txt").write_text("7")
    (project / "main.py").write_text(
        "import pathlib, sys, time\n"
        "print('begun', flush=True)\n"
        "sys.stdin.readline()\n"
        "print(int(pathlib.Path('data.txt').read_text()) * 6)\n"
        "sys.exit(9)\n"
    )
    batch = f"mkdir pycharm_project\nput -r {project}/. pycharm_project\n".encode()
    assert alice.run("sftp", "-b", "-", "pai-one", stdin=batch).returncode == 0
    with ssh_open(
        alice, "pai-one", "cd pycharm_project && env PYTHONUNBUFFERED=1 python3 main.py"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        # it streams: the program waits for us now
        assert process.stdout.readline() == b"begun\n"
        process.stdin.write(b"go on\n")
        process.stdin.close()
        assert process.stdout.read() == b"42\n"
        assert process.wait(30) == 9


@contextlib.contextmanager
def ssh_open(person: Person, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        ["ssh", "-F", person.config, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        yield process
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()


def eventually(holds: Callable[[], bool]) -> None:
    for _ in range(100):
        if holds():
            return
        time.sleep(0.2)
    pytest.fail("it never came about")
