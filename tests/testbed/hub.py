"""A real JupyterHub without its proxy: for asking it who somebody is, over its API."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import httpx

from pai_scheduler.testing.ports import free_port
from tests.testbed.scheduler import clean_environ

CONFIG = '''
from jupyterhub.proxy import Proxy

class NoProxy(Proxy):
    """Nobody comes in by a browser."""
    should_start = False
    async def add_route(self, routespec, target, data): pass
    async def delete_route(self, routespec): pass
    async def get_all_routes(self): return {{}}

c.JupyterHub.proxy_class = NoProxy
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.db_url = "sqlite:///{folder}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{folder}/cookie_secret"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allowed_users = {{"alice", "bob"}}
c.Authenticator.admin_users = {{"root"}}
c.JupyterHub.load_groups = {{"vision": {{"users": ["alice"]}}}}
c.JupyterHub.services = [
    {{"name": "pai", "api_token": "token-of-the-scheduler"}},
    {{"name": "pai-spawner", "api_token": "token-of-the-spawner"}},
    {{"name": "stranger", "api_token": "token-of-a-stranger"}},
    {{"name": "tests", "api_token": "token-of-the-tests", "admin": True}},
]
c.JupyterHub.load_roles = [
    {{"name": "user", "scopes": ["self", "access:services!service=pai"]}},
    {{"name": "spawner", "scopes": ["access:services!service=pai"], "services": ["pai-spawner", "stranger"]}},
    {{"name": "scheduler", "scopes": ["read:users"], "services": ["pai"]}},
]
'''


class RunningHub:
    """JupyterHub on a folder of its own, with alice (in the group vision), bob, and root, an admin."""

    def __init__(self, folder: Path) -> None:
        port = free_port()
        self.api_url = f"http://127.0.0.1:{port}/hub/api"
        self._config = folder / "jupyterhub_config.py"
        self._config.write_text(CONFIG.format(port=port, folder=folder))
        self._folder = folder
        self.start()

    def start(self) -> None:
        """Start; returns when it answers."""
        with (self._folder / "hub.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "jupyterhub", "-f", str(self._config)],
                cwd=self._folder,
                env=clean_environ(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        for _ in range(300):
            try:
                if httpx.get(self.api_url, trust_env=False).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"the Hub does not start:\n{(self._folder / 'hub.log').read_text()}")

    def service_environ(self) -> dict[str, str]:
        """Return what the Hub tells the service `pai`."""
        return {
            "JUPYTERHUB_API_TOKEN": "token-of-the-scheduler",
            "JUPYTERHUB_API_URL": self.api_url,
            "JUPYTERHUB_SERVICE_NAME": "pai",
            "JUPYTERHUB_SERVICE_PREFIX": "/services/pai/",
        }

    def token(self, user: str, *scopes: str) -> str:
        """Have a token made for a user; without scopes: with all that the user may do."""
        body = {"scopes": list(scopes)} if scopes else {}
        answer = self._ask("POST", f"/users/{user}/tokens", body)
        return str(answer.json()["token"])

    def leave_group(self, user: str, group: str) -> None:
        """Take a user out of a group."""
        self._ask("DELETE", f"/groups/{group}/users", {"users": [user]})

    def join_group(self, user: str, group: str) -> None:
        """Put a user into a group."""
        self._ask("POST", f"/groups/{group}/users", {"users": [user]})

    def close(self) -> None:
        """End it."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)

    def _ask(self, method: str, path: str, body: object) -> httpx.Response:
        answer = httpx.request(
            method,
            self.api_url + path,
            json=body,
            headers={"Authorization": "token token-of-the-tests"},
            trust_env=False,
        )
        answer.raise_for_status()
        return answer
