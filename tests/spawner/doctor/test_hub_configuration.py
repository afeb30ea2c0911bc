"""The Hub's configuration is read as the Hub reads it, and what ends its start is said."""

from __future__ import annotations

import pytest

from pai_spawner.doctor.configuration import ConfigurationError, is_loopback
from tests.spawner.conftest import Configure


def test_addresses_are_those_by_which_this_machine_reaches_them(configure: Configure) -> None:
    hub = configure(
        "c.JupyterHub.bind_url = 'http://0.0.0.0:8123/base/'",
        "c.JupyterHub.hub_bind_url = 'http://127.0.0.1:8124'",
    )
    assert hub.public_url == "http://127.0.0.1:8123/base"
    assert hub.api_url == "http://127.0.0.1:8124/base/hub/api"


def test_the_engine_is_what_the_scheduler_is_started_with(configure: Configure) -> None:
    started = "c.JupyterHub.services = [{'name': 'pai', 'command': ['pai-scheduler', '--engine', 'docker']}]"
    assert configure(started).engine == "docker"
    assert configure(PAI_ENGINE="swarm").engine == "swarm"
    assert configure().engine == "process"


def test_the_proxy_is_where_the_configuration_says(configure: Configure) -> None:
    lines = (
        "c.ConfigurableHTTPProxy.api_url = 'http://127.0.0.1:9'",
        "c.ConfigurableHTTPProxy.should_start = False",
    )
    proxy = configure(*lines, CONFIGPROXY_AUTH_TOKEN="secret").proxy
    assert proxy is not None
    assert (proxy.api_url, proxy.token, proxy.started_by_hub) == ("http://127.0.0.1:9", "secret", False)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import os; os.environ['NO_SUCH_VARIABLE']", "NO_SUCH_VARIABLE"),
        ("raise SystemExit('the profiles are wrong')", "the profiles are wrong"),
        ("c.JupyterHub.services = 7", "services"),
        ("c.JupyterHub.authenticator_class = 'no.such.Class'", "no"),
    ],
)
def test_a_configuration_that_ends_the_start_says_why(configure: Configure, line: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        configure(line)


def test_only_this_machine_reaches_a_loopback_address() -> None:
    assert all(
        map(is_loopback, ("http://127.0.0.1:8000", "https://localhost", "http://127.1.2.3", "http://[::1]:8"))
    )
    assert not any(map(is_loopback, ("http://0.0.0.0:8000", "http://:8000", "https://hub.example.org")))
