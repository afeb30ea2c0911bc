"""The image of notebook servers: what is in it, what is not, and when it is built again."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from hub_config.images import build as builder
from hub_config.images.build import Recipe, build, pip_settings
from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.docker.image_build import LABEL, BuildError
from pai_scheduler.testing.lab import PATIENCE, Lab
from tests.testbed.docker import client

#: What a notebook server says about itself, in one line.
ASK = """
import importlib.metadata, json, os, shutil
home = os.path.expanduser("~")
print(json.dumps({
    "user": os.getuid(),
    "home": home,
    "writable": os.access(home, os.W_OK),
    "programs": [
        name
        for name in ("curl", "hdfscli", "jupyter-lab", "jupyterhub-singleuser", "pai", "pai-singleuser")
        if shutil.which(name)
    ],
    "of the Hub's pages": os.listdir("/opt/jupyter/share/jupyterhub/static/components"),
    "of the build": [path for path in ("/build", "/etc/pip.conf") if os.path.exists(path)],
    "version": importlib.metadata.version("pai-for-jupyter"),
}))
"""


@pytest.fixture
async def lab(open_docker: Callable[..., Awaitable[DockerEngine]], notebook_image: str) -> AsyncIterator[Lab]:
    lab = await Lab.over(await open_docker(), notebook_image)
    yield lab
    await lab.clean()


def test_pips_settings_of_this_machine_go_into_the_build(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("certificates")
    files = pip_settings(
        [
            "global.index-url='https://user:secret@packages.example.com/simple'",
            ":env:.extra-index-url='file:///srv/wheels https://more.example.com/simple'",
            f"global.cert='{bundle}'",
            "global.find-links='/srv/wheels'",
            "install.user='true'",
        ],
        {},
    )
    assert files["certificates.pem"] == "certificates"
    assert files["pip.conf"].split("\n")[:4] == [
        "[global]",
        "index-url = https://user:secret@packages.example.com/simple",
        "extra-index-url = https://more.example.com/simple",
        "cert = /build/settings/certificates.pem",
    ]


def test_a_machine_without_settings_gives_none() -> None:
    assert pip_settings([], {}) == {"pip.conf": "[global]\n\n"}


def test_a_percent_sign_in_an_address_is_only_a_percent_sign() -> None:
    files = pip_settings(["global.index-url='https://a%40b@example.com/simple'"], {})
    assert "https://a%40b@example.com/simple" in files["pip.conf"]


def test_whatever_decides_what_is_in_the_image_changes_its_fingerprint() -> None:
    plain = Recipe()
    assert plain.fingerprint("sha256:a") == Recipe().fingerprint("sha256:a")
    assert plain.fingerprint("sha256:a") != plain.fingerprint("sha256:b")
    assert plain.fingerprint("sha256:a") != Recipe(packages=("scikit-learn",)).fingerprint("sha256:a")


def test_what_is_there_already_is_not_built_again(
    docker_host: str, notebook_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with client(docker_host) as docker:
        label = docker.images.get(notebook_image).labels[LABEL]

    def never(*_: object) -> None:
        raise AssertionError("it was built again")

    monkeypatch.setattr(Recipe, "fingerprint", lambda _self, _base: label)
    monkeypatch.setattr(builder, "_context", never)
    assert build(Recipe("local/debian:bookworm"), docker_host) == notebook_image


def test_a_base_image_that_cannot_be_pulled_is_one_sentence(docker_host: str) -> None:
    with pytest.raises(BuildError, match=r"127\.0\.0\.1:1/base could not be pulled: .*PAI_BASE_IMAGE"):
        build(Recipe("127.0.0.1:1/base"), docker_host)


async def test_the_image_has_what_a_notebook_needs_and_nothing_of_the_machine_that_built_it(
    lab: Lab,
) -> None:
    task, _ = await lab.run(f"python - <<'END'\n{ASK}\nEND")
    told = json.loads(lab.output(task, "stdout"))
    assert told.pop("version")
    assert told == {
        "user": 1000,
        "home": "/home/jovyan",
        "writable": True,
        "programs": ["curl", "hdfscli", "jupyter-lab", "jupyterhub-singleuser", "pai", "pai-singleuser"],
        "of the Hub's pages": [],
        "of the build": [],
    }


async def test_a_notebook_server_answers_at_its_tasks_address(
    lab: Lab,
) -> None:
    command = "exec jupyter lab --ip=0.0.0.0 --port=8888 --no-browser --IdentityProvider.token=secret"
    task = await lab.start(command, memory_mb=1000)
    address = (await lab.started(task)).address
    await lab.printed(task, "is running at")
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as browser:
        url = f"http://{address}:8888/lab/api/extensions"
        answer = await browser.get(url, headers={"Authorization": "token secret"})
    names = {extension["name"] for extension in answer.json()}
    assert "pai-labextension" in names
    assert "pai_labextension | extension was successfully loaded" in lab.output(task)
