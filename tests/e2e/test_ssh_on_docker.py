"""Into containers through the gateway, as people and their programs do it, and when something dies.

Everything is real: the scheduler, its gateway, Docker, the runtime in an image without SSH, ssh itself.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from pai_scheduler.testing.ports import free_port

from .ssh_house import LINES, PATIENCE, PORT, House, eventually, run, web_job

FIRST, SECOND = "alice+train+worker-0", "alice+train+worker-1"


def fetch(url: str, *options: str) -> str:
    """Get what a web server says; nothing where there is none."""
    return run("wget", "-q", "-t", "1", "-T", "20", "-O", "-", *options, url).out


def listens(port: int) -> bool:
    """Return whether something on this machine listens there."""
    lines = Path("/proc/net/tcp").read_text().split("\n")[1:-1]
    return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A" for line in lines)


@contextmanager
def forwarding(house: House, login: str, *options: str, port: int) -> Iterator[None]:
    """Run ssh with forwardings, until it listens at a port."""
    client = house.start(login, options=("-N", "-oExitOnForwardFailure=yes", *options))
    try:
        eventually(lambda: listens(port) or client.poll() is not None, "ssh listens")
        assert client.poll() is None, client.communicate()
        yield
    finally:
        end(client)


def end(client: subprocess.Popen[bytes]) -> None:
    client.kill()
    client.communicate(timeout=PATIENCE)


# what people do


def test_a_command_has_its_exit_code_and_the_environment_of_the_task(house: House) -> None:
    ran = house.ssh(SECOND, "hostname; echo wrong >&2; exit 7")
    assert (ran.code, ran.out, ran.error) == (7, "worker-1\n", "wrong\n")
    names = "$PAI_USER_NAME $PAI_JOB_NAME $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"
    assert house.ssh(SECOND, f"echo {names}; pwd").out == "alice train 1\n/pai\n"
    assert house.ssh(FIRST, 'printf %s "$LINES_OF_IT"').out == LINES
    path = house.ssh(FIRST, "echo $PATH").out.split(":")
    assert path[0] == "/opt/pai/bin"
    assert "/usr/bin" in path


def test_a_terminal_is_one(house: House) -> None:
    ran = house.ssh(FIRST, input="tty; echo $((6*7)); exit 3\n", options=("-tt",))
    assert ran.code == 3
    assert "/dev/pts/" in ran.out
    assert "\r\n42\r\n" in ran.out


def test_a_notebook_server_is_entered_by_its_name_in_the_hub(house: House) -> None:
    key = house.key("alice", "jupyter-alice-gpu")
    assert house.ssh("alice+gpu", "echo $PAI_JOB_NAME", key=key).out == "jupyter-alice-gpu\n"


def test_files_go_both_ways_by_sftp_scp_and_rsync(house: House, tmp_path: Path) -> None:
    options = house.options(house.key("alice", "train"))
    sent = tmp_path / "sent"
    sent.write_bytes(os.urandom(2_000_000))
    batch = f"put {sent} by-sftp\nget by-sftp {tmp_path}/sftp\n"
    ran = run("sftp", *options, "-b", "-", f"{FIRST}@127.0.0.1", input=batch)
    assert ran.code == 0, ran.error
    for ways in ((), ("-O",)):
        there, back = f"{FIRST}@127.0.0.1:/tmp/by-scp", tmp_path / f"scp{len(ways)}"
        for pair in ((str(sent), there), (there, str(back))):
            ran = run("scp", *ways, *options, *pair)
            assert ran.code == 0, ran.error
    assert house.ssh(FIRST, "command -v rsync").out == "/opt/pai/tools/rsync\n"
    tree = tmp_path / "tree"
    (tree / "a folder").mkdir(parents=True)
    (tree / "a folder" / "file").write_bytes(sent.read_bytes())
    shell = " ".join(["ssh", *options, "-l", FIRST])
    for pair in ((f"{tree}/", "127.0.0.1:/tmp/tree/"), ("127.0.0.1:/tmp/tree/", f"{tmp_path}/copy/")):
        ran = run("rsync", "-a", "-e", shell, *pair)
        assert ran.code == 0, ran.error
    came = [tmp_path / "sftp", tmp_path / "scp0", tmp_path / "scp1", tmp_path / "copy" / "a folder" / "file"]
    assert [file.read_bytes() == sent.read_bytes() for file in came] == [True] * 4
    # without a path a file comes where the command of the task is
    assert house.ssh(FIRST, "stat -c %s /pai/by-sftp").out == "2000000\n"


def test_ports_of_the_task_and_of_its_peer_are_forwarded_by_name_and_address(house: House) -> None:
    here, peer, by_address = free_port(), free_port(), free_port()
    address = house.address(house.container("alice", "train", 1))
    options = (
        *("-L", f"127.0.0.1:{here}:localhost:{PORT}"),
        *("-L", f"127.0.0.1:{peer}:worker-1:{PORT}"),
        *("-L", f"127.0.0.1:{by_address}:{address}:{PORT}"),
    )
    with forwarding(house, FIRST, *options, port=by_address):
        assert fetch(f"http://127.0.0.1:{here}/who") == "alice's worker-0\n"
        assert fetch(f"http://127.0.0.1:{peer}/who") == "alice's worker-1\n"
        assert fetch(f"http://127.0.0.1:{by_address}/who") == "alice's worker-1\n"


def test_a_browser_reaches_the_job_by_a_socks_proxy(house: House) -> None:
    proxy = free_port()
    with forwarding(house, FIRST, "-D", f"127.0.0.1:{proxy}", port=proxy):
        for name in ("localhost", "worker-0", "worker-1"):
            who = "worker-1" if name == "worker-1" else "worker-0"
            assert socks(proxy, name, PORT) == f"alice's {who}\n"


def socks(proxy: int, host: str, port: int) -> str:
    """Ask a web server behind a SOCKS proxy who it is; nothing where the proxy refuses."""
    with socket.create_connection(("127.0.0.1", proxy), timeout=PATIENCE) as connection:
        name = host.encode()
        connection.sendall(b"\5\1\0" + b"\5\1\0\3" + bytes([len(name)]) + name + port.to_bytes(2, "big"))
        said = b""
        while len(said) < 12 and (more := connection.recv(12 - len(said))):
            said += more
        if len(said) < 12 or said[3] != 0:
            return ""
        connection.sendall(b"GET /who HTTP/1.0\r\n\r\n")
        answer = b""
        while more := connection.recv(4096):
            answer += more
    return answer.partition(b"\r\n\r\n")[2].decode()


def test_the_task_reaches_a_port_of_the_client_and_its_agent(house: House, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        there = 18123
        ask = f"python3 -c \"import socket; print(socket.create_connection(('127.0.0.1', {there})).recv(9))\""
        client = house.start(
            FIRST, ask, options=("-R", f"{there}:127.0.0.1:{port}", "-oExitOnForwardFailure=yes")
        )
        server.settimeout(PATIENCE)
        connection, _ = server.accept()
        connection.sendall(b"from here")
        # (ssh stays as long as what it forwards)
        connection.close()
        out, error = client.communicate(timeout=PATIENCE)
        assert out == b"b'from here'\n", error
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(tmp_path / "agent")], stdout=subprocess.DEVNULL)
    try:
        eventually((tmp_path / "agent").exists, "the agent is there")
        env = {**os.environ, "SSH_AUTH_SOCK": str(tmp_path / "agent")}
        key = house.key("alice", "train")
        assert run("ssh-add", "-q", str(key), env=env).code == 0
        for option, keys in {"-A": "1\n", "-a": "0\n"}.items():
            line = house.line(FIRST, "ssh-add -L 2>/dev/null | grep -c ssh-ed25519", options=(option,))
            assert run(*line, env=env).out == keys
    finally:
        agent.kill()
        agent.wait()


def test_tasks_of_a_job_go_to_each_other_as_the_documents_say(house: House) -> None:
    inside = "ssh worker-1 'hostname; echo $PAI_JOB_NAME; exit 5'"
    assert (ran := house.ssh(FIRST, inside)).out == "worker-1\ntrain\n"
    assert ran.code == 5
    own = "ssh $PAI_CURRENT_TASK_ROLE_NAME-$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX hostname"
    assert house.ssh(FIRST, own).out == "worker-0\n"


def test_the_documents_way_from_outside_with_the_key_out_of_the_storage(house: House, tmp_path: Path) -> None:
    info = house.info("alice", "train")
    pair = info["keyPair"]
    key = tmp_path / pair["privateKeyFileName"]
    assert key.name == "alice~train"
    place = f"{house.scheduler.url}/webhdfs/v1{pair['folderPath']}/{key.name}?op=OPEN"

    def download(user: str) -> int:
        who = ("--auth-no-challenge", f"--user={user}", f"--password=token-of-{user}")
        return run("wget", "-q", *who, place, "-O", str(key)).code

    assert download("bob") != 0
    # it comes into the storage a moment after the job runs
    eventually(lambda: download("alice") == 0, "the key is in the storage")
    key.chmod(0o400)
    for each in info["containers"]:
        hosts = ("-oStrictHostKeyChecking=accept-new", f"-oUserKnownHostsFile={tmp_path}/known")
        line = ("ssh", "-F", "none", *hosts, "-oLogLevel=ERROR", "-i", str(key), "-p", each["sshPort"])
        ran = run(*line, f"root@{each['sshIp']}", "hostname; exit 6")
        assert (ran.code, ran.out, ran.error) == (6, f"{each['task']}\n", "")


# what editors do

#: As VS Code's Remote-SSH: a server that outlives the session which starts it, found again by its files.
BOOTSTRAP = """
folder=$HOME/.editor-server; mkdir -p "$folder"
if ! [ -e "$folder/pid" ] || ! kill -0 "$(cat "$folder/pid")" 2>/dev/null; then
  cat > "$folder/server.py" <<'END'
import http.server, os
os.chdir("/tmp/web")
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
with open(os.path.expanduser("~/.editor-server/port.new"), "w") as file:
    file.write(str(server.server_port))
os.rename(file.name, os.path.expanduser("~/.editor-server/port"))
server.serve_forever()
END
  rm -f "$folder/port"
  nohup python3 "$folder/server.py" > "$folder/log" 2>&1 < /dev/null &
  echo $! > "$folder/pid"
  echo started==yes==
fi
until [ -s "$folder/port" ]; do sleep 0.05; done
echo "listeningOn==$(cat "$folder/port")=="
echo "pid==$(cat "$folder/pid")=="
"""


def test_an_editors_server_outlives_its_session_and_the_next_one_finds_it(house: House) -> None:
    proxy = free_port()
    client = house.start(FIRST, "bash", options=("-T", "-D", f"127.0.0.1:{proxy}"))
    said = b""
    try:
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(BOOTSTRAP.encode())
        client.stdin.flush()
        while b"pid==" not in said:
            line = client.stdout.readline()
            assert line, said
            said += line
        port = int(said.split(b"listeningOn==")[1].split(b"==")[0])
        assert b"started==" in said
        assert socks(proxy, "127.0.0.1", port) == "alice's worker-0\n"
    finally:
        # the lid of the notebook is shut
        end(client)
    container = house.container("alice", "train")
    eventually(lambda: not house.running(container, "sshd: root"), "the session is gone")
    again = house.ssh(FIRST, "bash", input=BOOTSTRAP, options=("-T",))
    assert again.out == said.decode().replace("started==yes==\n", "")
    with forwarding(house, FIRST, "-D", f"127.0.0.1:{proxy}", port=proxy):
        assert socks(proxy, "127.0.0.1", port) == "alice's worker-0\n"
    house.ssh(FIRST, "kill $(cat ~/.editor-server/pid)")


def test_a_project_is_uploaded_and_run_by_a_remote_interpreter_whose_output_streams(
    house: House, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    (project / "package").mkdir(parents=True)
    (project / "package" / "__init__.py").write_text("GREETING = '你好'\n")
    main = "import sys, package\nprint(package.GREETING, flush=True)\nprint(input().upper())\nsys.exit(4)\n"
    (project / "main.py").write_text(main)
    options = house.options(house.key("alice", "train"))
    ran = run(
        "sftp", *options, "-b", "-", f"{FIRST}@127.0.0.1", input=f"mkdir /pai/up\nput -r {project} /pai/up\n"
    )
    assert ran.code == 0, ran.error
    client = house.start(FIRST, "env PYTHONUNBUFFERED=1 PYTHONPATH=/pai/up python3 /pai/up/project/main.py")
    assert client.stdin is not None
    assert client.stdout is not None
    # the first line comes while the program waits for the answer to it
    assert client.stdout.readline().decode() == "你好\n"
    out, _ = client.communicate(b"seen\n", timeout=PATIENCE)
    assert (client.returncode, out) == (4, b"SEEN\n")


# when something dies


def test_gateways_killed_under_load_leave_nothing_in_the_tasks_and_others_come_at_once(house: House) -> None:
    container = house.container("alice", "train")
    sessions = [house.start(FIRST, "echo in; exec sleep 4711") for _ in range(20)]
    upload = house.start(FIRST, "echo in; cat > /tmp/uploaded; sleep 4711")
    left = house.start(FIRST, "echo in; nohup sleep 4722 > /dev/null 2>&1 < /dev/null & exec sleep 4711")
    try:
        for client in (*sessions, upload, left):
            assert client.stdout is not None
            assert client.stdout.readline() == b"in\n"
        assert house.running(container, "sleep 4711") >= 21
        eventually(lambda: house.running(container, "sleep 4722"), "the one that stays has begun")
        assert upload.stdin is not None
        upload.stdin.write(bytes(30_000_000))
        killed = house.gateways()
        assert killed
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        # the service is not among those that die
        assert house.state("alice", "train") == "RUNNING"
        codes = [client.wait(PATIENCE) for client in (*sessions, upload, left)]
        assert set(codes) == {255}
        eventually(lambda: not house.running(container, "sleep 4711"), "nothing is left of the sessions")
        assert house.running(container, "sleep 4722") == 1
        eventually(lambda: house.ssh(FIRST, "hostname").out == "worker-0\n", "others come in")
        assert not set(killed) & set(house.gateways())
        eventually(lambda: len(house.gateways()) == len(killed), "all are there again")
    finally:
        for client in (*sessions, upload, left):
            end(client)
        house.ssh(FIRST, "kill $(pidof sleep)")


def test_sessions_go_on_when_the_scheduler_is_killed_and_others_come_when_it_is_back(house: House) -> None:
    house.begin("bob", web_job("lasting", house.image))
    client = house.start("bob+lasting", "cat")
    assert client.stdin is not None
    assert client.stdout is not None
    try:
        for word in (b"before\n", b"killed\n", b"back\n"):
            if word == b"killed\n":
                house.scheduler.kill()
            elif word == b"back\n":
                house.scheduler.start()
            client.stdin.write(word)
            client.stdin.flush()
            assert client.stdout.readline() == word
        eventually(lambda: house.ssh(FIRST, "hostname").out == "worker-0\n", "others come in")
        out, _ = client.communicate(b"still\n", timeout=PATIENCE)
        assert (client.returncode, out) == (0, b"still\n")
    finally:
        end(client)
    # its gateway tells the next scheduler, and again what the one that died may not have written down

    def told() -> list[str]:
        return list(dict.fromkeys(house.access_events("bob", "lasting")))

    eventually(lambda: len(told()) == 2, "job events for begin and end")
    opened, left = told()
    assert opened == "bob opened a command in worker-0 from 127.0.0.1 (the job's key)."
    assert left.startswith("bob left worker-0 after ")
    house.end("bob", "lasting")


def test_sessions_out_of_containers_as_jupyterlabs_terminals_pass_by_the_scheduler(house: House) -> None:
    bridge = urlsplit(house.http["alice"].get("/").json()["frontDoor"]).hostname
    settings = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
    gate = f"-i /run/pai/ssh/ssh_identity -p {house.port} -l alice+train+worker-1 {bridge}"
    client = house.start(FIRST, f"exec ssh -F none {settings} {gate} 'hostname; exec cat'")
    assert client.stdin is not None
    assert client.stdout is not None
    try:
        assert client.stdout.readline() == b"worker-1\n"
        house.scheduler.kill()
        client.stdin.write(b"killed\n")
        client.stdin.flush()
        assert client.stdout.readline() == b"killed\n"
        house.scheduler.start()
        out, _ = client.communicate(b"back\n", timeout=PATIENCE)
        assert (client.returncode, out) == (0, b"back\n")
        assert house.ssh(FIRST, f"ssh -F none {settings} {gate} hostname").out == "worker-1\n"
    finally:
        end(client)
        if house.scheduler.process.poll() is not None:
            house.scheduler.start()
    # by name, who came from where, which is a container
    address = house.address(house.container("alice", "train"))
    eventually(
        lambda: any(f"worker-1 from {address}" in told for told in house.access_events("alice", "train")),
        "told",
    )
