"""The units of hub_config/systemd: what they start is started here too, and each is restarted apart."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from string import Template
from typing import Any

import asyncssh
import httpx
import psutil
import pytest
import yaml

from hub_config.node import node_folder
from pai_scheduler.testing.ports import free_port
from tests.hub import PASSWORD, PATIENCE, REPOSITORY, wait_for, xsrf

SYSTEMD = REPOSITORY / "hub_config" / "systemd"
UNITS = ("pai-proxy", "pai-scheduler", "pai-hub")
_SECRETS = ("PAI_SPAWNER_TOKEN", "CONFIGPROXY_AUTH_TOKEN", "JUPYTERHUB_API_TOKEN")
_PORTS = {
    "8000": "PAI_PORT",
    "8081": "PAI_HUB_PORT",
    "8001": "PAI_PROXY_API_PORT",
    "9186": "PAI_SCHEDULER_PORT",
}


def service_of(unit: str) -> dict[str, str]:
    """Return the section [Service] of a unit."""
    parser = ConfigParser(interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign] # names are not to be in small letters
    parser.read(SYSTEMD / f"{unit}.service", encoding="utf-8")
    return dict(parser["Service"])


class Installation:
    """What the units would run on a machine, in a folder and at ports of its own."""

    def __init__(self, folder: Path) -> None:
        # installed and configured as the page for administrators says, only elsewhere
        self._places = {
            "/opt/pai/.venv/bin": str(Path(sys.executable).parent),
            "/opt/pai": str(REPOSITORY),
            "/etc/pai": str(folder / "etc"),
            "/var/lib/pai": str(folder / "lib"),
        }
        (folder / "etc").mkdir()
        (folder / "lib" / "hub").mkdir(parents=True)
        self._environ = self._written_environ()
        settings = yaml.safe_load(self._here((SYSTEMD / "scheduler.yaml").read_text()))
        del settings["front-door-port"]
        self.ssh_port = free_port()
        settings |= {"engine": "process", "ssh-port": self.ssh_port}
        (folder / "etc" / "scheduler.yaml").write_text(yaml.safe_dump(settings))
        self.url = f"http://127.0.0.1:{self._environ['PAI_PORT']}"
        self._log = folder / "log"
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def _here(self, text: str) -> str:
        for there, here in self._places.items():
            text = text.replace(there, here)
        return text

    def _written_environ(self) -> dict[str, str]:
        lines = self._here((SYSTEMD / "pai.env").read_text()).splitlines()
        environ = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
        assert {name for name, value in environ.items() if not value} == {*_SECRETS, "PAI_PASSWORD"}
        environ |= {name: secrets.token_hex(32) for name in _SECRETS}
        environ |= {"PAI_PASSWORD": PASSWORD, "PAI_ENGINE": "process"}
        environ |= {name: str(free_port()) for name in ("PAI_SESSIONS_PORT", "PAI_CONSOLE_PORT")}
        for usual, name in _PORTS.items():
            assert environ[name] == usual
            environ[name] = str(free_port())
            for url in ("JUPYTERHUB_API_URL", "JUPYTERHUB_SERVICE_URL"):
                environ[url] = environ[url].replace(f":{usual}", f":{environ[name]}")
        return environ

    def start(self, unit: str) -> None:
        """Start what a unit would start, as systemd would: with nothing of our own environment."""
        service = service_of(unit)
        environ = {**self._environ, "HOME": os.environ["HOME"]}
        name, _, value = self._here(service["Environment"]).partition("=")
        environ[name] = f"{node_folder()}:{value}"
        command = [
            Template(word).substitute(environ) for word in shlex.split(self._here(service["ExecStart"]))
        ]
        with open(self._log, "ab") as log:
            self._running[unit] = subprocess.Popen(
                command,
                env=environ,
                cwd=self._here(service.get("WorkingDirectory", "/")),
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def stop(self, unit: str) -> None:
        """End a unit, as systemd would: its program alone, or all that it has started, as KillMode says."""
        program = self._running.pop(unit)
        everything = [psutil.Process(program.pid)]
        if service_of(unit).get("KillMode", "control-group") != "process":
            everything += everything[0].children(recursive=True)
        for process in everything:
            process.terminate()
        program.wait(PATIENCE)

    def reload(self, unit: str) -> None:
        """Do what the unit says for that."""
        kill, option, who = service_of(unit)["ExecReload"].split()
        assert (kill, who) == ("/bin/kill", "$MAINPID")
        self._running[unit].send_signal(signal.Signals[f"SIG{option.removeprefix('-')}"])

    def close(self) -> None:
        """End all that runs, the Hub first."""
        for unit in reversed(list(self._running)):
            self.stop(unit)

    def status(self, path: str) -> int:
        """Ask through the proxy; return the answer's status, 0 without one."""
        try:
            return httpx.get(self.url + path, timeout=PATIENCE, trust_env=False).status_code
        except httpx.TransportError:
            return 0

    def wait_until_there(self, path: str) -> None:
        """Wait until the proxy leads to something that answers."""
        wait_for(lambda: self.status(path) == 200, path, lambda: self._log.read_text(errors="replace"))

    def token_after_login(self, name: str) -> str:
        """Log in with the form, and make a token."""
        with httpx.Client(
            base_url=self.url, follow_redirects=True, timeout=PATIENCE, trust_env=False
        ) as browser:
            browser.get("/hub/login")
            form = {"username": name, "password": PASSWORD, "_xsrf": xsrf(browser)}
            browser.post("/hub/login", data=form)
            made = browser.post(
                f"/hub/api/users/{name}/tokens",
                json={"note": "test"},
                headers={"X-XSRFToken": xsrf(browser), "Referer": f"{self.url}/hub/token"},
            )
            return str(made.json()["token"])

    def jobs(self, token: str) -> httpx.Response:
        """List the jobs of a token's user."""
        return self.scheduler(token, "GET", "jobs")

    def scheduler(self, token: str, method: str, path: str, **options: Any) -> httpx.Response:
        """Ask the scheduler, through the proxy, in the name of a token's user."""
        headers = {"Authorization": f"Bearer {token}"}
        url = f"{self.url}/services/pai/api/v1/{path}"
        return httpx.request(method, url, headers=headers, timeout=PATIENCE, trust_env=False, **options)


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Installation]:
    """Start all three."""
    made = Installation(tmp_path)
    for unit in UNITS:
        made.start(unit)
    yield made
    made.close()


HUB, SCHEDULER = "/hub/api/", "/services/pai/api/v1"


async def test_hub_and_scheduler_are_restarted_apart_and_what_is_open_in_the_ssh_gateway_outlives_it(
    installation: Installation,
) -> None:
    installation.wait_until_there(HUB)
    installation.wait_until_there(SCHEDULER)
    token = installation.token_after_login("alice")
    assert installation.jobs(token).json() == []
    job = {
        "jobName": "sleeper",
        "image": "local/python",
        "taskRoles": [
            {"name": "worker", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 256, "command": "sleep 1000"}
        ],
    }
    assert installation.scheduler(token, "POST", "jobs", json=job).status_code == 202
    way = f"user/alice/jobs/{job['jobName']}"

    def runs() -> bool:
        return bool(installation.scheduler(token, "GET", way).json()["jobStatus"]["state"] == "RUNNING")

    def connect() -> AbstractAsyncContextManager[asyncssh.SSHClientConnection]:
        return asyncssh.connect(
            "127.0.0.1",
            installation.ssh_port,
            username="alice+sleeper",
            password=token,
            known_hosts=None,
            client_keys=None,
            config=None,
        )

    wait_for(runs, "the job to run")
    async with connect() as connection, connection.create_process("cat") as open_one:
        open_one.stdin.write("before\n")
        assert await open_one.stdout.readline() == "before\n"
        for number, change in enumerate(("restart of the scheduler", "reload", "restart of the Hub")):
            if change == "reload":
                installation.reload("pai-scheduler")
            else:
                unit = "pai-hub" if "Hub" in change else "pai-scheduler"
                installation.stop(unit)
                answers = (installation.status(SCHEDULER), installation.status(HUB))
                assert answers == ((200, 503) if unit == "pai-hub" else (503, 200))
                open_one.stdin.write(f"without {number}\n")
                assert await open_one.stdout.readline() == f"without {number}\n"
                installation.start(unit)
                installation.wait_until_there(HUB)
                installation.wait_until_there(SCHEDULER)
            # what is open goes on, and others come in
            open_one.stdin.write(f"{change}\n")
            assert await open_one.stdout.readline() == f"{change}\n"
            async with connect() as other:
                assert (await other.run("echo in")).stdout == "in\n"
            assert installation.jobs(installation.token_after_login(f"bob-{number}")).json() == []
    stopped = installation.scheduler(token, "PUT", f"{way}/executionType", json={"value": "STOP"})
    assert stopped.status_code == 202
    wait_for(
        lambda: installation.scheduler(token, "GET", way).json()["jobStatus"]["state"] == "STOPPED",
        "the job to end",
    )


def test_the_scheduler_comes_before_containers_where_both_want_a_core() -> None:
    # what a container or a service has that says nothing of it
    usual = 100
    assert int(service_of("pai-scheduler")["CPUWeight"]) > usual


def test_systemd_finds_nothing_wrong_in_the_units(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed (Debian: apt-get install systemd)")
    # it wants the programs to be there, which are not on this machine
    for unit in UNITS:
        text = (SYSTEMD / f"{unit}.service").read_text()
        command = service_of(unit)["ExecStart"].split()[0]
        (tmp_path / f"{unit}.service").write_text(text.replace(f"ExecStart={command}", "ExecStart=/bin/true"))
    done = subprocess.run(
        [program, "verify", "--man=no", *(str(tmp_path / f"{unit}.service") for unit in UNITS)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
