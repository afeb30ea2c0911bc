"""People who mean harm at the SSH servers of tasks in containers, with a colleague who works meanwhile.

Bob has a job of his own and may do there what he likes; alice has others. Everything is real.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import asyncssh
import httpx
import pytest
from asyncssh.constants import OPEN_ADMINISTRATIVELY_PROHIBITED

from pai_scheduler.ssh.keys import JobKeys
from tests.testbed.docker import bridge_address

from .ssh_house import PATIENCE, PORT, House, eventually, run, web_job

GUESSER = Path(__file__).parents[1] / "scheduler" / "ssh" / "gateway" / "guesser.py"
DENIED = "denied"


async def connect(
    house: House,
    login: str,
    keys: Sequence[Path] = (),
    password: str | None = None,
    address: str = "127.0.0.1",
) -> asyncssh.SSHClientConnection:
    """Log in by a name that no client would send."""
    options = asyncssh.SSHClientConnectionOptions(
        username="somebody",
        client_keys=[str(key) for key in keys] or None,
        password=password,
        known_hosts=str(house.known),
        config=None,
        agent_path=None,
        login_timeout=PATIENCE,
        host="127.0.0.1",
        port=house.port,
    )
    options.username = login
    loop = asyncio.get_running_loop()
    options.waiter = loop.create_future()
    _, connection = await loop.create_connection(
        lambda: asyncssh.SSHClientConnection(loop, options, wait="auth"),
        "127.0.0.1",
        house.port,
        local_addr=(address, 0),
    )
    await options.waiter
    return connection


async def enter(
    house: House,
    login: str,
    keys: Sequence[Path] = (),
    password: str | None = None,
    address: str = "127.0.0.1",
) -> str:
    """Log in and ask where one is; return what is said, or that one is not let in."""
    try:
        connection = await connect(house, login, keys, password, address)
    except (asyncssh.Error, OSError):
        return DENIED
    async with connection:
        done = await connection.run("echo $PAI_USER_NAME $PAI_JOB_NAME $(hostname)")
        said = str(done.stdout) + str(done.stderr)
    return said


# at the gateway


async def test_bob_comes_into_his_own_tasks_and_none_of_alices_by_whatever_name(
    house: House, own_key: Path
) -> None:
    keys = (own_key, house.key("bob", "other"))
    assert await enter(house, "bob+other+worker-0", [own_key]) == "bob other worker-0\n"
    assert await enter(house, "bob", [], "token-of-bob") == "bob other worker-0\n"
    names = [
        *("alice", "alice+train", "alice+train+worker-0", "alice+train+worker-9", "alice+none"),
        *("alice+gpu", "alice+notebook", "alice+jupyter-alice-gpu", "alice+other+worker-0"),
        *("bob+alice+train+worker-0", "alice+train+worker-0+bob", "alice+bob", "alice+", "+alice+train"),
        *("Alice+train", "alice +train", "alice%2Btrain", "alice+train+worker-0\n", "root", "", "+", "++"),
    ]
    tried = {
        name: [await enter(house, name, keys), await enter(house, name, [], "token-of-bob")] for name in names
    }
    assert {name: said for name, said in tried.items() if said != [DENIED, DENIED]} == {}


async def test_what_does_not_run_is_said_to_its_owner_with_nothing_of_others(
    house: House, own_key: Path
) -> None:
    for name in ("bob+train+worker-0", "bob+jupyter-alice-gpu"):
        said = await enter(house, name, [own_key])
        assert said == f"No job {name.split('+')[1]} of user bob runs. There are: other.\n"
    assert "worker-7" in await enter(house, "bob+other+worker-7", [own_key])
    assert "other-0" in await enter(house, "bob+other+other-0", [own_key])


async def test_the_key_of_a_job_that_has_ended_or_of_another_opens_nothing(house: House) -> None:
    house.begin("alice", web_job("short", house.image))
    key = house.key("alice", "short")
    assert await enter(house, "alice+short", [key]) == "alice short worker-0\n"
    assert await enter(house, "alice+train+worker-0", [key]) == DENIED
    container = house.container("alice", "short")
    lasting = await connect(house, "alice+short", [key])
    house.end("alice", "short")
    eventually(lambda: not exists(house, container), "its container is gone")
    for login in ("alice+short+worker-0", "alice+short", "alice+train+worker-0", "alice+train", "alice"):
        assert await enter(house, login, [key]) == DENIED
    # who had logged in before it ended opens nothing more
    async with lasting:
        assert (await lasting.run("hostname")).stderr == "The job of this key has ended.\n"


def exists(house: House, container: str) -> bool:
    with house.docker() as docker:
        return container in {each.name for each in docker.containers.list(all=True, ignore_removed=True)}


async def test_login_names_that_are_tricks_are_refused_and_leave_the_log_clean(house: House) -> None:
    begin = house.scheduler.log.stat().st_size
    names = [
        *("a" * 100_000, "alice+train\u202e0-rekrow", "alice`id`'--", "alice+train+worker-0|sh"),
        *("\x1b]0;owned\x07alice", "alice\nroot: let in", "alice\r\n+train", "alice\0+train"),
        *("alice+train+$(touch /tmp/owned)", "alice;id", "-oX=y", "%s%n", "{user}", "你好" * 500),
        *("+" * 10_000, "../../etc/passwd", "alice+../bob"),
    ]
    for name in names:
        said = await enter(house, name, [house.key("bob", "other")], address="127.0.0.77")
        assert said == DENIED, name[:50]
    house.works()
    written = house.scheduler.log.read_bytes()[begin:]
    assert b"login refused from 127.0.0.77" in written
    assert len(written) < 10_000
    assert not any(byte < 32 and byte != 10 for byte in written)
    assert b"\nroot: let in" not in written
    assert "\u202e".encode() not in written


async def test_thousands_of_guesses_are_refused_in_a_few_lines_while_a_colleague_works(
    house: House, own_key: Path
) -> None:
    begin = house.scheduler.log.stat().st_size
    line = (sys.executable, str(GUESSER), str(house.port))
    attacks = [
        await asyncio.create_subprocess_exec(
            *line, f"127.0.0.{66 + number}", "700", stdout=asyncio.subprocess.PIPE
        )
        for number in range(3)
    ]
    times = []
    try:
        async with (
            await connect(house, "bob+other", [own_key]) as colleague,
            colleague.create_process("cat") as process,
        ):
            while any(attack.returncode is None for attack in attacks):
                begun = time.monotonic()
                process.stdin.write("here\n")
                assert await asyncio.wait_for(process.stdout.readline(), PATIENCE) == "here\n"
                times.append(time.monotonic() - begun)
                await asyncio.to_thread(house.works)
    finally:
        for attack in attacks:
            if attack.returncode is None:
                attack.kill()
    tried = [int((await attack.communicate())[0]) for attack in attacks]
    print(f"{sum(tried)} guesses; {len(times)} round trips, the slowest {max(times) * 1000:.0f} ms")
    assert sum(tried) >= 2100
    written = house.scheduler.log.read_text()[begin:]
    assert written.count("login refused from") < 100
    assert "login refused from 127.0.0.66" in written


# forwarding


async def test_nothing_is_forwarded_but_to_the_job_itself(house: House, own_key: Path) -> None:
    hers = house.address(house.container("alice", "train"))
    own = house.address(house.container("bob", "other"))
    gateway = own.rsplit(".", 1)[0] + "." + str(int(own.rsplit(".", 1)[1]) - 1)
    service = int(house.scheduler.url.split(":")[2].split("/")[0])
    bridge = bridge_of(house)
    # bob is root in his container, and the names of his job lead where he wants
    house.do(house.container("bob", "other"), f"echo '{hers} metadata scheduler' >> /etc/hosts")
    ports = (service, house.port, 80, PORT)
    forbidden = [
        *(hers, gateway, bridge, "169.254.169.254", "metadata", "scheduler", "worker-1", "train"),
        *(f"::ffff:{hers}", f"[::ffff:{hers}]", "::ffff:127.0.0.1", "2130706433", "0x7f000001", "127.1"),
        *("::", "0.0.0.0", "017700000001", "127.0.0.2", "localhost.", "[::1]", " localhost", "localhost\0.x"),  # noqa: S104
        *("*", "", f"{own}.", "host.docker.internal"),
        *("a" * 70_000, "localhost\n", "fe80::1%eth0", str(int.from_bytes(bytes(map(int, hers.split(".")))))),
    ]  # fmt: skip
    async with await connect(house, "bob+other", [own_key]) as connection:
        reader, writer = await connection.open_connection("worker-0", PORT)
        writer.write(b"GET /who HTTP/1.0\r\n\r\n")
        assert (await reader.read()).endswith(b"bob's worker-0\n")
        codes = {}
        for host in forbidden:
            for port in ports:
                with pytest.raises(asyncssh.ChannelOpenError) as refusal:
                    await connection.open_connection(host, port)
                codes[host, port] = refusal.value.code
        assert {where for where, code in codes.items() if code != OPEN_ADMINISTRATIVELY_PROHIBITED} == set()
        # loopback is the task's own: neither the service nor the gateway are there
        for port in (service, house.port):
            for host in ("localhost", "127.0.0.1", "::1", "LOCALHOST"):
                with pytest.raises(asyncssh.ChannelOpenError):
                    await connection.open_connection(host, port)
        # and socket files are
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.open_unix_connection("/var/run/docker.sock")
        # nothing is listened to at addresses of this machine
        listener = await connection.forward_remote_port("0.0.0.0", 0, "127.0.0.1", service)  # noqa: S104
        port = listener.get_port()
        assert not [at for at in listening(Path("/proc/net/tcp").read_text()) if at.endswith(f":{port:04X}")]
        tables = str((await connection.run("cat /proc/net/tcp /proc/net/tcp6")).stdout)
        # its own loopback
        assert [at for at in listening(tables) if at.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]
    log = house.scheduler.log.read_text()
    assert f"no connection is forwarded to '{hers}'" in log


def listening(table: str) -> list[str]:
    """List the addresses of `/proc/net/tcp` at which something listens."""
    rows = [row.split() for row in table.splitlines()]
    return [row[1] for row in rows if len(row) > 3 and row[3] == "0A"]


def bridge_of(house: House) -> str:
    """Return the address of this machine at which containers reach the Hub."""
    with house.docker() as docker:
        return bridge_address(docker)


async def test_nobody_jumps_over_their_task_to_anothers(house: House, own_key: Path) -> None:
    hers = house.address(house.container("alice", "train"))
    port = house.ssh("alice+train+worker-0", "cat /pai-job/ssh_port").out.strip()
    jump = " ".join([*house.line("bob+other", "-W", "%h:%p", key=own_key)][:-3])
    for words in (("-W", f"{hers}:{port}"), ("-W", "169.254.169.254:80")):
        ran = house.ssh("bob+other", key=own_key, options=words)
        assert (ran.code, ran.out) == (255, "")
    proxy = f"{jump} -W {hers}:{port} 127.0.0.1"
    key = house.key("alice", "train")
    ran = run(
        "ssh", "-F", "none", "-i", str(key), "-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null",
        f"-oProxyCommand={proxy}", "-oBatchMode=yes", f"root@{hers}", "hostname",
    )  # fmt: skip
    assert (ran.code, ran.out) == (255, "")


# at the service itself


async def test_neither_users_nor_tasks_ask_what_the_gateway_asks(house: House) -> None:
    access = f"{house.scheduler.url}/access"
    keys = JobKeys.in_folder(house.scheduler.data_dir)
    own = house.key("bob", "other")
    public = run("ssh-keygen", "-y", "-f", str(own)).out.strip()
    login = {"login": "bob+other", "method": "publickey", "credential": public, "peer": "127.0.0.1"}
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as http:
        for token in ("token-of-bob", "token-of-root", "x"):
            headers = {"Authorization": f"Bearer {token}"}
            for what in ("login", "open", "note"):
                answer = await http.post(f"{access}/{what}", json=login, headers=headers)
                assert answer.status_code == 401
        # as the gateway itself: no session token becomes another
        http.headers["Authorization"] = f"Bearer {keys.gateway_token()}"
        session_token = (
            (await http.post(f"{access}/login", json=login)).raise_for_status().json()["session_token"]
        )
        opened = await http.post(
            f"{access}/open", json={"login": "bob+other", "session_token": session_token}
        )
        assert opened.json()["job"] == "other"
        turned = [
            session_token[:place] + ("A" if letter != "A" else "B") + session_token[place + 1 :]
            for place, letter in enumerate(session_token[:-1])
        ]
        for other in (*turned, session_token[:-8], session_token * 2, "", "."):
            answer = await http.post(f"{access}/open", json={"login": "bob+other", "session_token": other})
            assert answer.status_code == 401, other
        answer = await http.post(
            f"{access}/open", json={"login": "alice+train", "session_token": session_token}
        )
        assert answer.status_code == 401


def test_a_link_to_a_key_gives_no_other_key_and_not_for_longer(house: House) -> None:
    link = house.info("bob", "other")["keyPair"]["privateKeyDirectDownloadLink"]
    good = httpx.get(link, trust_env=False)
    assert good.text == house.key("bob", "other").read_text()
    url = httpx.URL(link)
    later = str(int(url.params["expires"]) + 1)
    signature = url.params["signature"]
    turned = ("A" if signature[0] != "A" else "B") + signature[1:]
    for other in (
        url.copy_with(path=url.path.replace("/bob/jobs/other", "/alice/jobs/train")),
        url.copy_with(path=url.path.replace("/bob/jobs/other", "/bob/jobs/none")),
        url.copy_set_param("expires", later),
        url.copy_set_param("signature", turned),
        url.copy_set_param("signature", ""),
        url.copy_remove_param("expires"),
    ):
        assert httpx.get(other, trust_env=False).status_code == 401, other


def test_a_key_with_options_is_not_registered_and_one_for_somebody_else_neither(house: House) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode().strip()
    for options in ('command="id"', 'permitopen="*:*"', "cert-authority", 'from="*",restrict'):
        answer = house.http["bob"].post("/user/bob/ssh-keys", json={"key": f"{options} {key}"})
        assert answer.status_code == 400
    answer = house.http["bob"].post("/user/alice/ssh-keys", json={"key": key})
    assert answer.status_code == 403
    assert house.http["alice"].get("/user/alice/ssh-keys").json() == []


# from inside a task

#: Tries to connect; says what answers first, or that nothing does.
PROBE = """
import socket, sys
for target in sys.argv[1:]:
    host, _, port = target.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=3) as found:
            found.sendall(b"GET /who HTTP/1.0\\r\\n\\r\\n")
            print(target, "open", found.recv(7))
    except OSError as error:
        print(target, "shut")
"""


def test_a_task_reaches_no_others_tasks_though_all_are_published(house: House, own_key: Path) -> None:
    her = house.container("alice", "train")
    hers, bridge = house.address(her), bridge_of(house)
    port = house.ssh("alice+train+worker-0", "cat /pai-job/ssh_port").out.strip()
    published = house.info("alice", "train")["containers"][0]["sshPort"]
    targets = [f"{hers}:{port}", f"{hers}:{PORT}", f"{bridge}:{published}", f"127.0.0.1:{published}"]
    ran = house.ssh("bob+other", f"python3 - {' '.join(targets)}", key=own_key, input=PROBE)
    assert ran.out.splitlines() == [f"{target} shut" for target in targets]
    # the way is the right one: within the job it leads there
    ran = house.ssh("alice+train+worker-1", f"python3 - {hers}:{port} {hers}:{PORT}", input=PROBE)
    assert ran.out.splitlines() == [f"{hers}:{port} open b'SSH-2.0'", f"{hers}:{PORT} open b'HTTP/1.'"]


def test_a_task_comes_to_the_gateway_and_through_it_into_no_others_task(house: House, own_key: Path) -> None:
    bridge = bridge_of(house)
    line = (
        "ssh -oStrictHostKeyChecking=no -oUserKnownHostsFile=/dev/null -oBatchMode=yes -oLogLevel=ERROR "
        f"-i /run/pai/ssh/ssh_identity -p {house.port} -l {{}} {bridge} hostname"
    )
    # the address is right: its own job is entered by its own job's key
    assert house.ssh("bob+other", line.format("bob+other"), key=own_key).out == "worker-0\n"
    for login in ("alice+train+worker-0", "alice+train", "alice"):
        ran = house.ssh("bob+other", line.format(login), key=own_key)
        assert (ran.out, "Permission denied" in ran.error) == ("", True), ran
