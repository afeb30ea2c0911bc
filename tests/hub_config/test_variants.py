"""The Hub's configuration in other forms, each with a real Hub into which somebody logs in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from hub_config.run import main
from tests.hub import PATIENCE, REPOSITORY, Hub, use_own_ports, xsrf
from tests.testbed.oauth import OAuthServer
from tests.testbed.postgres import Postgres

VARIANTS = REPOSITORY / "hub_config" / "variants"
_CLUSTER = """\
virtualClusters:
  default: {capacity: 50}
  vision: {capacity: 50, groups: [vision]}
"""
#: By their groups: both are of the lab, one of them may use the virtual cluster of a group.
_PEOPLE = {
    "alice": ("alice's own", ["lab", "vision"]),
    "bob": ("bob's own", ["lab"]),
    "mallory": ("mallory's own", ["elsewhere"]),
}


@pytest.fixture
def database(postgres: Postgres) -> Iterator[str]:
    url = postgres.new_database()
    yield url
    postgres.drop(url)


@pytest.fixture
def oauth_hub(tmp_path: Path, database: str) -> Iterator[tuple[Hub, OAuthServer]]:
    """Run a Hub into which the members of the group `lab` log in by OAuth, and which has a PostgreSQL."""
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(_CLUSTER)
    arguments = ("--config", str(VARIANTS / "oauth.py"), "--cluster", str(cluster))
    hub = Hub(tmp_path / "run", *arguments)
    provider = OAuthServer(_PEOPLE, redirect_uri=f"{hub.url}/hub/oauth_callback")
    provider.start()
    # (the provider has to know the Hub's address first)
    hub.environment = {
        "PAI_OAUTH_CLIENT_ID": provider.client_id,
        "PAI_OAUTH_CLIENT_SECRET": provider.client_secret,
        "PAI_OAUTH_AUTHORIZE_URL": f"{provider.url}/authorize",
        "PAI_OAUTH_TOKEN_URL": f"{provider.url}/token",
        "PAI_OAUTH_USERDATA_URL": f"{provider.url}/userinfo",
        "PAI_OAUTH_GROUPS": "lab",
        "PAI_HUB_DATABASE_URL": database.replace("postgresql:", "postgresql+psycopg:"),
    }
    try:
        hub.start()
        yield hub, provider
    finally:
        hub.stop()
        provider.stop()


def log_in(hub: Hub, browser: httpx.Client, name: str) -> httpx.Response:
    """Go where the Hub's login page sends a browser, and fill in the provider's form."""
    form = browser.get(f"{hub.url}/hub/oauth_login")
    assert form.url.path == "/authorize", form.text
    password, _ = _PEOPLE[name]
    return browser.post(form.url, data={"username": name, "password": password})


def new_browser() -> httpx.Client:
    return httpx.Client(follow_redirects=True, timeout=PATIENCE, trust_env=False)


def may_use_vision(hub: Hub, browser: httpx.Client, name: str) -> bool:
    """Make a token as somebody who has logged in, and ask the scheduler what is theirs."""
    made = browser.post(
        f"{hub.url}/hub/api/users/{name}/tokens",
        json={"note": "test"},
        headers={"X-XSRFToken": xsrf(browser), "Referer": f"{hub.url}/hub/token"},
    )
    answer = httpx.get(
        f"{hub.url}/services/pai/api/v1/user/{name}/available",
        headers={"Authorization": f"Bearer {made.json()['token']}"},
        timeout=PATIENCE,
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text
    return "vision" in answer.text


def test_oauth_lets_the_groups_in_and_opens_their_virtual_clusters_and_the_users_are_in_a_postgresql(
    oauth_hub: tuple[Hub, OAuthServer], postgres: Postgres, database: str
) -> None:
    hub, provider = oauth_hub
    for name, vision in (("alice", True), ("bob", False)):
        with new_browser() as browser:
            assert "shared password" not in browser.get(f"{hub.url}/hub/login").text
            assert log_in(hub, browser, name).status_code == 200
            assert may_use_vision(hub, browser, name) is vision
    with new_browser() as browser:
        assert log_in(hub, browser, "mallory").status_code == 403
    # each code was of use once, and for the Hub only
    assert provider.codes == {}
    assert sorted(provider.tokens.values()) == ["alice", "bob", "mallory"]

    hub.stop()
    assert not (hub.folder / "hub" / "jupyterhub.sqlite").exists()
    with postgres.connect(database.rpartition("/")[2]) as connection:
        assert connection.execute("SELECT name FROM users ORDER BY name").fetchall() == [("alice",), ("bob",)]


def test_a_configuration_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    use_own_ports(tmp_path)
    with pytest.raises(SystemExit):
        main(["--folder", str(tmp_path), "--config", "no-such.py"])
    assert "there is no configuration no-such.py" in capsys.readouterr().err
