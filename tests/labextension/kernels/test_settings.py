from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jupyter_server.serverapp import ServerApp
from traitlets import TraitError
from traitlets.config import Config

from pai_labextension.kernels.settings import PAIKernels
from pai_scheduler.rest.address import DEFAULT_URL

VARIABLES = ("PAI_API_URL", "PAI_TOKEN", "JUPYTERHUB_API_TOKEN", "JUPYTERHUB_SERVICE_PREFIX")


@pytest.fixture(autouse=True)
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def settings(**sections: Any) -> PAIKernels:
    return PAIKernels(config=Config(sections))


def test_outside_of_a_hub_there_is_the_usual_scheduler_and_no_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    alone = settings()
    assert (alone.api_url, alone.token, alone.server) == (DEFAULT_URL, "", str(tmp_path))


def test_what_the_extension_has_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "the hub's")
    assert settings().token == "the hub's"
    monkeypatch.setenv("PAI_TOKEN", "the person's")
    monkeypatch.setenv("PAI_API_URL", "http://there/pai")
    assert (settings().token, settings().api_url) == ("the person's", "http://there/pai")
    extension = {"api_url": "http://here/pai", "token": "mine"}
    ours = settings(PAIExtension=extension)
    assert (ours.token, ours.api_url) == ("mine", "http://here/pai")


def test_a_server_is_known_by_its_address_below_the_hub_else_by_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = ServerApp(root_dir=str(tmp_path))
    assert PAIKernels(parent=app).server == str(tmp_path)
    # a manager's settings are those of its server
    assert PAIKernels(parent=PAIKernels(parent=app)).server == str(tmp_path)
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/alice/second/")
    assert PAIKernels(parent=app).server == "/user/alice/second/"


def test_less_than_no_idleness_is_refused():
    with pytest.raises(TraitError, match="idle_minutes"):
        settings(PAIKernels={"idle_minutes": -1}).idle_minutes  # noqa: B018
