"""Asks what runs: the proxy, the Hub and the scheduler, with the tokens that they have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import jupyterhub

from pai_scheduler.server.doctor.finding import Finding, good, note, wrong

from ..messages import msg
from .configuration import HubConfiguration, Proxy

_SECONDS = 10.0
_SCOPE = "access:services!service=pai"


def of_running_parts(hub: HubConfiguration) -> Iterator[Finding]:
    """Judge what answers. A Hub that does not run is not wrong: it may be asked before its first start."""
    with httpx.Client(timeout=_SECONDS, trust_env=False) as http:
        hub_version = _version(http, hub.api_url)
        if hub_version is None and not _answers(http, hub.public_url):
            yield note(
                msg("The Hub does not run: what it says and is told was not looked at."),
                msg("Start it, and ask again."),
            )
            return
        if hub.proxy is None:
            yield note(msg("The proxy is not JupyterHub's usual one: its routes were not looked at."))
        else:
            yield from _proxy(http, hub, hub.proxy)
        if hub_version is None:
            yield wrong(
                msg("The proxy answers, but the Hub does not, at {url}.", url=hub.api_url),
                msg("See why it ended: its log, or {command}", command="journalctl -u pai-hub"),
            )
            return
        if hub_version != jupyterhub.__version__:
            yield wrong(
                msg(
                    "The Hub that runs is JupyterHub {running}, but {installed} is installed.",
                    running=hub_version,
                    installed=jupyterhub.__version__,
                ),
                msg("Restart it."),
            )
        else:
            yield good(msg("The Hub answers at {url}.", url=hub.api_url))
        yield from _scheduler(http, hub)
        yield from _tokens(http, hub)


def _proxy(http: httpx.Client, hub: HubConfiguration, proxy: Proxy) -> Iterator[Finding]:
    try:
        answer = http.get(f"{proxy.api_url}/api/routes", headers={"Authorization": f"token {proxy.token}"})
    except httpx.HTTPError as error:
        yield wrong(
            msg("The proxy does not answer at {url}: {error}", url=proxy.api_url, error=error),
            msg("Restart the Hub, which starts it.")
            if proxy.started_by_hub
            else msg("Start it: {command}", command="systemctl start pai-proxy"),
        )
        return
    if answer.status_code == httpx.codes.FORBIDDEN:
        yield wrong(
            msg("The proxy at {url} does not take the Hub's token.", url=proxy.api_url),
            msg("Give both the same CONFIGPROXY_AUTH_TOKEN, then restart the proxy and the Hub."),
        )
        return
    routes: dict[str, Any] = answer.json() if answer.is_success else {}
    lacking = [
        service["name"]
        for service in hub.app.services
        if service.get("url") and not any(route.endswith(f"/services/{service['name']}") for route in routes)
    ]
    if lacking:
        yield wrong(
            msg("The proxy has no way to {services}.", services=", ".join(lacking)),
            msg("Restart the Hub, which tells it."),
        )
    else:
        yield good(msg("The proxy answers at {url}, and knows the Hub's services.", url=proxy.api_url))


def _scheduler(http: httpx.Client, hub: HubConfiguration) -> Iterator[Finding]:
    url = f"{hub.config.PAISpawner.get('scheduler_url', '')}/api/v1"
    token = str(hub.config.PAISpawner.get("scheduler_token", ""))
    try:
        # (anybody may ask the first, only who is known the second)
        there = http.get(url)
        known = http.get(f"{url}/virtual-clusters", headers={"Authorization": f"Bearer {token}"})
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        yield wrong(
            msg("The scheduler does not answer at {url}: {error}", url=url, error=error),
            msg(
                "See why it ended: the Hub's log, or {command}; c.PAISpawner.scheduler_url says where it is.",
                command="journalctl -u pai-scheduler",
            ),
        )
        return
    if there.is_success and known.is_success:
        yield good(msg("The scheduler answers at {url}, and takes the spawner's token.", url=url))
    elif known.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        yield wrong(
            msg("The scheduler at {url} does not take the spawner's token.", url=url),
            msg(
                "c.PAISpawner.scheduler_token must be the api_token of the service pai-spawner, with the "
                "scope {scope}.",
                scope=_SCOPE,
            ),
        )
    else:
        yield wrong(
            msg("The scheduler at {url} answers with status {status}.", url=url, status=known.status_code),
            msg("See its log."),
        )
    # what users and servers go through
    through = f"{hub.public_url}/services/pai/api/v1"
    try:
        status = http.get(through).status_code
    except httpx.HTTPError:
        status = 0
    if status != httpx.codes.OK and not hub.app.subdomain_host:
        yield wrong(
            msg("Users do not reach the scheduler at {url}.", url=through),
            msg("Restart the Hub, which tells the proxy where it is."),
        )


def _tokens(http: httpx.Client, hub: HubConfiguration) -> Iterator[Finding]:
    for service in hub.app.services:
        token = str(service.get("api_token") or "")
        if not token:
            continue  # the Hub makes one at each start
        answer = http.get(f"{hub.api_url}/user", headers={"Authorization": f"token {token}"})
        who = answer.json() if answer.is_success else {}
        if who.get("name") != service["name"]:
            yield wrong(
                msg("The Hub does not take the token of its service {name}.", name=service["name"]),
                msg("It has changed since the Hub was started: restart the Hub with the right one."),
            )
        elif service["name"] == "pai-spawner" and _SCOPE not in who.get("scopes", ()):
            yield wrong(
                msg("The service pai-spawner lacks the scope {scope}.", scope=_SCOPE),
                msg("Give it a role with that in c.JupyterHub.load_roles, and restart the Hub."),
            )
        else:
            yield good(msg("The Hub takes the token of its service {name}.", name=service["name"]))


def _version(http: httpx.Client, api_url: str) -> str | None:
    try:
        answer = http.get(f"{api_url}/")
        return str(answer.json()["version"])
    except (httpx.HTTPError, ValueError, KeyError, TypeError):
        return None


def _answers(http: httpx.Client, url: str) -> bool:
    try:
        http.get(url)
    except httpx.HTTPError:
        return False
    return True
