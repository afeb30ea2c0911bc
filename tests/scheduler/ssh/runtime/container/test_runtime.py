"""What one does in a task over SSH, in containers of every kind, with OpenSSH's own clients."""

from __future__ import annotations

import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pai_scheduler.testing.ports import free_port
from tests.scheduler.ssh.runtime.container.boxes import (
    ENVIRONMENT,
    PATIENCE,
    PORT,
    Box,
    docker_exec,
    eventually,
    listens,
    output,
    run,
)

#: What a session has that the command has not, or otherwise.
_OF_A_SESSION = {
    "HOME",
    "LOGNAME",
    "PATH",
    "PWD",
    "SHELL",
    "SHLVL",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "USER",
    "_",
}


def test_a_command_has_its_exit_code_its_output_and_its_input(box: Box) -> None:
    done = box.ssh("cat; echo to stderr >&2; exit 7", input="to stdin\n")
    assert (done.returncode, done.stdout, done.stderr) == (7, "to stdin\n", "to stderr\n")
    assert [box.ssh(f"exit {code}").returncode for code in (0, 1, 254)] == [0, 1, 254]


def test_a_command_that_a_signal_ended_says_so_as_shells_do(box: Box) -> None:
    assert box.ssh("kill -TERM $$").returncode == 128 + 15


def test_a_script_on_stdin_is_read_by_the_shell(box: Box) -> None:
    done = box.ssh(options=("-T",), input='cd /; pwd; echo "$0" | grep -c sh\nexit 3\n')
    assert (done.returncode, done.stdout) == (3, "/\n1\n")


def test_a_terminal_is_one(box: Box) -> None:
    done = box.ssh(
        options=("-tt",),
        input='tty; echo "has $((20 + 3)) $TERM"; case $- in *i*) echo is""live;; esac\nexit 5\n',
    )
    assert done.returncode == 5, done
    # (a shell that comes up after what was typed begins the line with its prompt)
    assert re.search(r"^(# )?/dev/pts/\d+$", done.stdout, re.M)
    assert "has 23 " in done.stdout
    assert "of the task" not in done.stdout.partition("has 23 ")[2].splitlines()[0]
    assert re.search(r"islive$", done.stdout, re.M)


def test_every_session_has_the_environment_of_the_command(box: Box) -> None:
    command = box.ssh("cat /proc/$(pidof sleep)/environ").stdout
    assert "LINES_OF_IT=" in command, "the command's environment cannot be read"
    mine, theirs = (
        dict(pair.split("=", 1) for pair in text.split("\0") if "=" in pair)
        for text in (box.ssh("cat /proc/self/environ").stdout, command)
    )
    assert {name: mine.get(name) for name in ENVIRONMENT} == ENVIRONMENT
    assert mine["PATH"] == f"{theirs['PATH']}:/opt/pai/tools"
    assert mine["HOME"] == theirs["HOME"]
    assert {name: value for name, value in mine.items() if name not in _OF_A_SESSION} == {
        name: value for name, value in theirs.items() if name not in _OF_A_SESSION
    }


def test_a_session_begins_in_the_folder_of_the_task_with_a_shell_that_is_there(box: Box) -> None:
    done = box.ssh('pwd; test -x "$SHELL" && echo there; test -n "$USER" && echo named')
    assert done.stdout == "/pai\nthere\nnamed\n"


def test_files_go_in_and_out_by_sftp(box: Box, tmp_path: Path) -> None:
    sent, back = tmp_path / "sent", tmp_path / "back"
    sent.write_bytes(bytes(range(256)) * 4096)
    batch = tmp_path / "batch"
    batch.write_text(f"pwd\nput {sent} by-sftp\nls -l by-sftp\nget by-sftp {back}\nrm by-sftp\n")
    done = run("sftp", *box.options, "-b", str(batch), f"root@{box.address}")
    assert done.returncode == 0, done.stderr
    assert "working directory: /pai\n" in done.stdout
    assert back.read_bytes() == sent.read_bytes()


@pytest.mark.parametrize("how", ["-O", "-s"])
def test_files_go_in_and_out_by_scp_old_and_new(box: Box, tmp_path: Path, how: str) -> None:
    sent, back = tmp_path / "sent", tmp_path / "back"
    sent.write_bytes(b"by scp\0\n" * 1000)
    there = f"root@{box.address}:by-scp"
    for pair in ((str(sent), there), (there, str(back))):
        done = run("scp", how, *box.options, *pair)
        assert done.returncode == 0, done.stderr
    assert back.read_bytes() == sent.read_bytes()
    assert box.ssh("rm /pai/by-scp").returncode == 0


def test_folders_go_in_and_out_by_rsync(box: Box, tmp_path: Path) -> None:
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "deep" / "名字 with space").write_bytes(b"x" * 10_000)
    shell = " ".join(["ssh", *box.options])
    there = f"root@{box.address}:by-rsync/"
    for pair in ((f"{tmp_path}/tree/", there), (there, f"{tmp_path}/back/")):
        done = run("rsync", "-r", "-e", shell, *pair)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "back" / "deep" / "名字 with space").read_bytes() == b"x" * 10_000
    assert box.ssh("rm -r /pai/by-rsync").returncode == 0


@contextmanager
def forwarding(box: Box, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Forward ports for a while."""
    client = box.start_ssh("echo ready; cat", options=("-oExitOnForwardFailure=yes", *options))
    assert client.stdin is not None
    assert client.stdout is not None
    try:
        assert client.stdout.readline() == "ready\n"
        yield client
    finally:
        client.kill()
        client.communicate(timeout=PATIENCE)


def through_socks(port: int, name: str, target: int) -> bytes:
    """Ask a SOCKS5 proxy for a name (RFC 1928); return the first bytes from there, none if refused."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as proxy:
        proxy.sendall(b"\5\1\0")
        assert proxy.recv(2) == b"\5\0"
        host = name.encode()
        proxy.sendall(b"\5\1\0\3" + bytes([len(host)]) + host + target.to_bytes(2, "big"))
        answer = proxy.recv(10)
        return proxy.recv(4) if answer[1:2] == b"\0" else b""


def test_ports_of_the_task_and_of_its_peers_are_reached_from_outside(box: Box) -> None:
    own, peer, socks = free_port(), free_port(), free_port()
    targets = (f"-L{own}:localhost:{PORT}", f"-L{peer}:debian-0:{PORT}", f"-D{socks}")
    with forwarding(box, *targets):
        assert listens("127.0.0.1", own)
        assert listens("127.0.0.1", peer)
        assert through_socks(socks, "127.0.0.1", PORT) == b"SSH-"
        assert through_socks(socks, "nameless-0", PORT) == b"SSH-"


def test_nothing_but_the_task_and_its_peers_is_reached_through_it(box: Box) -> None:
    socks = free_port()
    gateway = re.sub(r"\d+$", "1", box.address)
    with socket.socket() as outside, forwarding(box, f"-D{socks}"):
        outside.bind(("0.0.0.0", 0))  # noqa: S104 - that the container could reach
        outside.listen()
        assert not through_socks(socks, gateway, outside.getsockname()[1])
        assert not through_socks(socks, "169.254.169.254", 80)
        assert not through_socks(socks, "example.com", 443)


def test_a_port_here_is_reached_from_the_task_and_by_nobody_else_there(box: Box) -> None:
    with socket.socket() as here:
        here.bind(("127.0.0.1", 0))
        here.listen()
        port = 20000 + here.getsockname()[1] % 10000
        thread = threading.Thread(target=lambda: here.accept()[0].sendall(b"from outside\n"))
        thread.start()
        done = box.ssh(
            f"nc 127.0.0.1 {port} </dev/null; netstat -ltn 2>/dev/null | grep ':{port} '",
            options=(f"-R0.0.0.0:{port}:127.0.0.1:{here.getsockname()[1]}",),
        )
        thread.join(PATIENCE)
    first, _, listening = done.stdout.partition("\n")
    assert first == "from outside", done
    assert f"127.0.0.1:{port}" in listening


def test_tasks_reach_each_other_by_name_and_address_at_once_and_check_whom_they_reach(
    box: Box, debian: Box
) -> None:
    name = box.ssh("hostname").stdout.strip()
    there = f"ssh {name} 'hostname; ssh debian-0 hostname'; ssh {box.address} hostname"
    done = debian.ssh(there)
    assert (done.stdout, done.stderr) == (f"{name}\ndebian-0\n{name}\n", "")
    impostor = debian.ssh(f"ssh -o GlobalKnownHostsFile=/dev/null {name} hostname")
    assert impostor.returncode == 255
    assert "verification failed" in impostor.stderr


def test_files_go_from_task_to_task(box: Box, debian: Box) -> None:
    name = box.ssh("hostname").stdout.strip()
    done = debian.ssh(
        f"echo one > one; scp -q one {name}:one && echo get one two | sftp -b - {name} >/dev/null"
        f" && rsync {name}:one three && cat one two three; rm -f one two three; ssh {name} rm -f one"
    )
    assert (done.stdout, done.stderr) == ("one\n" * 3, "")


def test_the_command_does_not_notice_the_ssh_server(box: Box) -> None:
    assert output(box) == (b"", b"")
    assert box.status() == ""


def test_nobody_gets_in_without_the_jobs_key(debian: Box, tmp_path: Path) -> None:
    stranger = tmp_path / "key"
    assert run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(stranger)).returncode == 0
    options = [option for option in debian.options if "IdentityFile" not in option]
    done = run(
        "ssh", *options, f"-oIdentityFile={stranger}", "-oBatchMode=yes", f"root@{debian.address}", "id"
    )
    assert done.returncode == 255
    assert "Permission denied (publickey)" in done.stderr


@pytest.mark.parametrize("user", ["sshd", "daemon", "pai", "alice"])
def test_the_key_opens_no_other_account(debian: Box, user: str) -> None:
    done = run("ssh", *debian.options, "-oBatchMode=yes", f"{user}@{debian.address}", "id")
    assert done.returncode == 255
    assert "Permission denied" in done.stderr


def test_an_images_own_ssh_server_stays(boxes: dict[str, Box]) -> None:
    box = boxes["own-server"]
    eventually(lambda: listens(box.address, 22))
    options = [option for option in box.options if "Port" not in option]
    done = run("ssh", *options, "-oBatchMode=yes", f"root@{box.address}")
    assert done.returncode == 255
    assert "verification failed" in done.stderr


def test_ssh_from_a_task_to_elsewhere_is_as_the_user_has_set_it(debian: Box) -> None:
    done = debian.ssh(
        "mkdir -p ~/.ssh /etc/ssh && printf 'Host elsewhere\\n User somebody\\n Port 2200\\n' > ~/.ssh/config"
        " && printf 'Compression yes\\n' > /etc/ssh/ssh_config"
        " && ssh -G elsewhere; rm -r ~/.ssh/config /etc/ssh/ssh_config"
    )
    said = done.stdout.splitlines()
    assert {"user somebody", "port 2200", "compression yes", "stricthostkeychecking ask"} <= set(said)


def test_someone_else_in_the_container_has_neither_the_keys_nor_the_environment(debian: Box) -> None:
    look = "cd /run/pai/ssh && ls; cat /run/pai/ssh/ssh_identity /run/pai/ssh/environment"
    said = docker_exec(debian, "setpriv", "--reuid", "1234", "--clear-groups", "sh", "-c", look)
    assert said.count("Permission denied") == 2
    assert "PRIVATE KEY" not in said
