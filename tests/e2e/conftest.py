"""Fixtures of whole ways through the product."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import asyncssh
import pytest

from tests.hub import Hub

from .ssh_house import LINES, House, web_job


@pytest.fixture(params=["process", "docker"])
def engine(request: pytest.FixtureRequest) -> str:
    """Return what carries out the jobs of `hub`."""
    return str(request.param)


@pytest.fixture
def hub(engine: str, request: pytest.FixtureRequest) -> Iterator[Hub]:
    """Return a Hub on which nobody has been yet."""
    hub: Hub = request.getfixturevalue(f"{engine}_hub")
    yield hub
    hub.clear()


@pytest.fixture(scope="session")
def house(
    docker_host: str, runtime_image: str, debian_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[House]:
    """Return a house in which alice's `train` (two workers) and `notebook`, and bob's `other` run."""
    del runtime_image  # its name is the one of this version
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", docker_host)
        house = House(tmp_path_factory.mktemp("house"), docker_host, debian_image)
        try:
            house.begin("alice", web_job("train", debian_image, 2, jobEnvs={"LINES_OF_IT": LINES}))
            session = {"session": {"server": "gpu"}}
            house.begin("alice", web_job("jupyter-alice-gpu", debian_image, extras=session))
            house.begin("bob", web_job("other", debian_image))
            yield house
        finally:
            house.close()


@pytest.fixture(scope="session")
def own_key(house: House) -> Iterator[Path]:
    """Return a key that bob registered."""
    path = house.folder / "bobs-own"
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(path)
    path.chmod(0o600)
    line = key.export_public_key().decode().strip()
    answer = house.http["bob"].post("/user/bob/ssh-keys", json={"key": line})
    answer.raise_for_status()
    yield path
    fingerprint = answer.json()["fingerprint"]
    house.http["bob"].delete(f"/user/bob/ssh-keys/{fingerprint.replace('/', '%2F')}").raise_for_status()
