"""A real JupyterHub as `make run` starts it: its own folder and port, real logins, real servers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from pai_scheduler.testing.ports import free_port
from tests.testbed.homes import remove_homes

REPOSITORY = Path(__file__).resolve().parent.parent
GPU_LAB = REPOSITORY / "hub_config" / "examples" / "gpu-lab.yaml"
PASSWORD = "correct horse battery"
#: of the administrator `root`
ADMIN_PASSWORD = "correct horse battery of all administrators"
#: Seconds that anything may take here, on a slow machine under load.
PATIENCE = 60.0


class Hub:
    """One installation; the Hub on it can be started, stopped and killed again and again."""

    def __init__(self, folder: Path, *arguments: str, environment: dict[str, str] | None = None) -> None:
        self.folder = folder
        self.port = free_port()
        use_own_ports(folder)
        self.url = f"http://127.0.0.1:{self.port}"
        self._arguments = arguments
        self.environment = environment or {}
        self._run: subprocess.Popen[str] | None = None
        self._tokens: dict[str, str] = {}

    def start(self) -> None:
        """Start the Hub and wait until it says that it is there."""
        self._run = subprocess.Popen(
            [
                *(sys.executable, "-m", "hub_config.run", "--folder", str(self.folder)),
                *("--port", str(self.port), *self._arguments),
            ],
            cwd=REPOSITORY,
            env={
                **os.environ,
                **self.environment,
                "PASSWORD": PASSWORD,
                "ADMIN_PASSWORD": ADMIN_PASSWORD,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._run.stdout is not None
        said = ""
        for line in self._run.stdout:
            said += line
            if "Ctrl-C stops" in line:
                return
        raise AssertionError(f"the Hub did not start:\n{said}\n{self.log()}")

    def stop(self) -> None:
        """Press Ctrl-C."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Kill -9 the Hub, its starter, its proxy and its scheduler, as a power cut does."""
        hub = int((self.folder / "lock").read_text().split()[0])
        family = [hub, *_children(hub)]
        if self._run is not None:
            self._run.kill()
        for pid in family:
            os.kill(pid, signal.SIGKILL)
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        if self._run is not None:
            if self._run.poll() is None:
                self._run.send_signal(number)
            self._run.communicate(timeout=PATIENCE)
            self._run = None

    def clear(self) -> None:
        """Be new for the next test: without servers, jobs, homes and people but root, who administers it."""
        if self._run is None or self._run.poll() is not None:
            self.start()
        people = [user for user in self.api("root", "GET", "users").json() if user["name"] != "root"]
        for user in people:
            for server in user["servers"]:
                self.stop_server(user["name"], server, by="root")
        wait_for(self._without_jobs, "all jobs to end and to be deleted", self.log)
        for user in people:
            gone = self.api("root", "DELETE", f"users/{quote(user['name'], safe='')}")
            assert gone.is_success, gone.text
        self._tokens = {name: token for name, token in self._tokens.items() if name == "root"}
        shutil.rmtree(self.folder / "home", ignore_errors=True)
        if host := self.environment.get("DOCKER_HOST"):
            remove_homes(host, self.folder / "scheduler")

    def _without_jobs(self) -> bool:
        """Stop and delete what there is; return whether there was nothing."""
        jobs = self.scheduler("root", "GET", "jobs").json()
        for job in jobs:
            path = f"user/{quote(job['username'], safe='')}/jobs/{job['name']}"
            if job["subState"] == "ENDED":
                self.scheduler("root", "DELETE", path)
            else:
                self.scheduler("root", "PUT", f"{path}/executionType", json={"value": "STOP"})
        return not jobs

    def close(self) -> None:
        """Stop every job of everybody who was here, remove their homes in Docker, then stop the Hub."""
        try:
            if self._run is not None and self._run.poll() is None:
                for name in self._people():
                    for job in self.running_jobs(name):
                        path = f"user/{name}/jobs/{job['name']}/executionType"
                        self.scheduler(name, "PUT", path, json={"value": "STOP"})
                    wait_for(partial(self._is_idle, name), f"{name}'s jobs to end")
                if host := self.environment.get("DOCKER_HOST"):
                    remove_homes(host, self.folder / "scheduler")
        finally:
            self.stop()

    def _is_idle(self, name: str) -> bool:
        return not self.running_jobs(name)

    def _people(self) -> list[str]:
        with sqlite3.connect(self.folder / "hub" / "jupyterhub.sqlite") as database:
            return [name for (name,) in database.execute("SELECT name FROM users")]

    def log(self) -> str:
        """Return what the Hub and the scheduler logged."""
        return (self.folder / "hub" / "hub.log").read_text(errors="replace")

    @contextmanager
    def browser(self, name: str, language: str = "en") -> Iterator[httpx.Client]:
        """Log in with the form; gives a client that keeps the cookies."""
        with httpx.Client(
            base_url=self.url,
            follow_redirects=True,
            timeout=PATIENCE,
            headers={"Accept-Language": language},
            trust_env=False,
        ) as client:
            answer = self._fill_in(client, name, ADMIN_PASSWORD if name == "root" else PASSWORD)
            assert answer.status_code == 302, answer.text
            yield client

    def log_in(self, name: str, password: str) -> httpx.Response:
        """Fill in the form of the login page; return the answer, which is 302 for those who are let in."""
        with httpx.Client(base_url=self.url, timeout=PATIENCE, trust_env=False) as client:
            return self._fill_in(client, name, password)

    def _fill_in(self, client: httpx.Client, name: str, password: str) -> httpx.Response:
        client.get("/hub/login")
        return client.post(
            "/hub/login",
            data={"username": name, "password": password, "_xsrf": xsrf(client)},
            follow_redirects=False,
        )

    def token(self, name: str) -> str:
        """Return a token of the user, as the Hub's token page makes them."""
        if name not in self._tokens:
            with self.browser(name) as browser:
                made = browser.post(
                    f"/hub/api/users/{name}/tokens",
                    json={"note": "test"},
                    headers={"X-XSRFToken": xsrf(browser), "Referer": f"{self.url}/hub/token"},
                )
                assert made.is_success, made.text
                self._tokens[name] = made.json()["token"]
        return self._tokens[name]

    def use_token(self, name: str, token: str) -> None:
        """Act for a user with a token that was made elsewhere: in a browser, at the Hub's public address."""
        self._tokens[name] = token

    def api(self, name: str, method: str, path: str, **options: Any) -> httpx.Response:
        """Call the Hub's REST API as a user."""
        return self._call(name, method, f"/hub/api/{path}", **options)

    def scheduler(self, name: str, method: str, path: str, **options: Any) -> httpx.Response:
        """Call the scheduler as a user, through the Hub's proxy."""
        return self._call(name, method, f"/services/pai/api/v1/{path}", **options)

    def sessions(self, name: str, method: str, path: str, **options: Any) -> httpx.Response:
        """Call the service that watches over servers as a user, through the Hub's proxy."""
        return self._call(name, method, f"/services/pai-sessions/{path}", **options)

    def _call(self, name: str, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token(name)}", **options.pop("headers", {})}
        with httpx.Client(base_url=self.url, timeout=PATIENCE, trust_env=False) as client:
            return client.request(method, path, headers=headers, **options)

    def start_server(
        self, name: str, options: dict[str, Any] | None = None, server: str = ""
    ) -> httpx.Response:
        """Ask the Hub for a server."""
        place = f"servers/{server}" if server else "server"
        return self.api(name, "POST", f"users/{name}/{place}", json=options or {})

    def stop_server(self, name: str, server: str = "", by: str = "") -> None:
        """Stop a server, `by` its user or somebody else, and wait for that."""
        place = f"servers/{quote(server, safe='')}" if server else "server"
        answer = self.api(by or name, "DELETE", f"users/{quote(name, safe='')}/{place}")
        assert answer.status_code in (202, 204), answer.text
        wait_for(lambda: not self.server(name, server, by).get("pending"), "the server to stop")

    def server(self, name: str, server: str = "", by: str = "") -> dict[str, Any]:
        """Return the Hub's own view of a server, as its user or another sees it; empty where none is."""
        servers = self.api(by or name, "GET", f"users/{quote(name, safe='')}").json()["servers"]
        return dict(servers.get(server, {}))

    def wait_ready(self, name: str, server: str = "") -> None:
        """Wait until a starting server is ready."""

        def ready() -> bool:
            model = self.server(name, server)
            assert model.get("ready") or model.get("pending"), f"{name}'s server failed\n{self.log()[-4000:]}"
            return bool(model.get("ready"))

        wait_for(ready, f"{name}'s server to be ready", self.log)

    def running_jobs(self, name: str) -> list[dict[str, Any]]:
        """List a user's jobs of which something still waits or runs."""
        jobs = self.scheduler(name, "GET", f"jobs?username={name}").json()
        return [job for job in jobs if job["subState"] != "ENDED"]

    def progress(
        self, name: str, until: Callable[[dict[str, Any]], bool], server: str = ""
    ) -> list[dict[str, Any]]:
        """Read a starting server's progress until an event fits.

        Where it neither starts nor runs any more, the Hub has no events; that is told as a failure.
        """
        place = f"servers/{server}" if server else "server"
        events = []
        with httpx.stream(
            "GET",
            f"{self.url}/hub/api/users/{name}/{place}/progress",
            headers={"Authorization": f"Bearer {self.token(name)}"},
            timeout=PATIENCE,
            trust_env=False,
        ) as response:
            if response.status_code == 400:
                return [{"failed": True, "message": json.loads(response.read())["message"]}]
            for line in response.iter_lines():
                if line.startswith("data: "):
                    events.append(json.loads(line.removeprefix("data: ")))
                    if until(events[-1]):
                        break
        return events


@contextmanager
def open_hub(folder: Path, engine: str = "process", *arguments: str, **environment: str) -> Iterator[Hub]:
    """Run a Hub over the GPUs that the example declares; in the end all jobs are stopped, and it too."""
    hub = Hub(folder, "--engine", engine, "--cluster", str(GPU_LAB), *arguments, environment=environment)
    hub.start()
    try:
        yield hub
    finally:
        hub.close()


def xsrf(client: httpx.Client) -> str:
    """Return the token against forged requests, of the Hub's own pages."""
    return next(
        cookie.value or ""
        for cookie in client.cookies.jar
        if cookie.name == "_xsrf" and cookie.path == "/hub/"
    )


def wait_for(fits: Callable[[], Any], what: str, explain: Callable[[], str] = str) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not fits():
        assert time.monotonic() < deadline, f"waited too long for {what}\n{explain()[-4000:]}"
        time.sleep(0.1)


def _children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == pid:
                found.append(int(entry.name))
    return found


def use_own_ports(folder: Path) -> None:
    """Keep an installation away from the usual inner ports, which another test's Hub may take meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = ("HUB", "PROXY_API", "SCHEDULER", "SESSIONS", "CONSOLE", "SSH")
    names = [f"PAI_{part}_PORT" for part in parts]
    (folder / "ports.json").write_text(json.dumps({name: free_port() for name in names}))
