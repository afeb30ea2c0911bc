"""The Hub's configuration file, loaded as the Hub loads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from traitlets.config.loader import PyFileConfigLoader

import hub_config
from hub_config.run import parse_settings
from pai_spawner.handlers import CHANGES_PATTERN, PATTERN, AvailabilityHandler, ChoosingHandler

CONFIG = Path(hub_config.__file__).with_name("jupyterhub_config.py")


def load(monkeypatch: pytest.MonkeyPatch, folder: Path, **environ: str) -> Any:
    for name in ("DOCKER_HOST", "PAI_DATABASE_URL", "PGPASSFILE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"PAI_RUN_FOLDER": str(folder), "PAI_SPAWNER_TOKEN": "t", **environ}.items():
        monkeypatch.setenv(name, value)
    return PyFileConfigLoader(CONFIG.name, str(CONFIG.parent)).load_config()


def test_the_database_reaches_the_scheduler_past_its_command_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = "postgresql://pai:secret@127.0.0.1/pai"
    config = load(monkeypatch, tmp_path, PAI_DATABASE_URL=url, PGPASSFILE="/etc/pai/pgpass")
    (scheduler, *_) = config.JupyterHub.services
    assert scheduler["environment"] == {"PAI_DATABASE_URL": url, "PGPASSFILE": "/etc/pai/pgpass"}
    assert not any("secret" in word for word in scheduler["command"])


def test_without_one_the_scheduler_keeps_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (scheduler, *_) = load(monkeypatch, tmp_path).JupyterHub.services
    assert scheduler["environment"] == {}


def test_the_scheduler_reads_the_file_beside_the_configuration_or_the_one_that_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (scheduler, *_) = load(monkeypatch, tmp_path).JupyterHub.services
    # first of all, so that what follows wins
    assert scheduler["command"][1:3] == ["--config", str(CONFIG.with_name("scheduler.yaml"))]
    own = tmp_path / "own.yaml"
    environ = parse_settings(["--folder", str(tmp_path), "--scheduler", str(own)]).environment()
    named = {"PAI_SCHEDULER_FILE": environ["PAI_SCHEDULER_FILE"]}
    (scheduler, *_) = load(monkeypatch, tmp_path, **named).JupyterHub.services
    assert scheduler["command"][1:3] == ["--config", str(own)]


def test_on_docker_everybody_has_a_home_that_stays_with_the_tutorials_of_the_image(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = load(monkeypatch, tmp_path, PAI_ENGINE="docker").PAISpawner
    assert config.home_in_container == "/home/jovyan"
    recipe = (CONFIG.parent / "images/notebook/Dockerfile").read_text()
    assert f"HOME={config.home_in_container} " in recipe
    assert f"COPY tutorials/ {config.tutorials}/\n" in recipe
    assert "home_in_container" not in load(monkeypatch, tmp_path, PAI_ENGINE="process").PAISpawner


def test_the_storage_is_the_one_that_was_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    where = "http://one:9870;http://two:9870"
    (scheduler, *_) = load(monkeypatch, tmp_path, PAI_STORAGE=where).JupyterHub.services
    assert scheduler["command"][-2:] == ["--storage", where]
    (scheduler, *_) = load(monkeypatch, tmp_path, PAI_STORAGE="").JupyterHub.services
    assert "--storage" not in scheduler["command"]


def test_the_schedulers_account_on_an_hdfs_is_the_one_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = parse_settings(["--storage", "http://n:1", "--storage-user", "pai", "--folder", str(tmp_path)])
    told = {name: asked.environment()[name] for name in ("PAI_STORAGE", "PAI_STORAGE_USER")}
    (scheduler, *_) = load(monkeypatch, tmp_path, **told).JupyterHub.services
    assert scheduler["command"][-4:] == ["--storage", "http://n:1", "--storage-user", "pai"]
    (scheduler, *_) = load(monkeypatch, tmp_path, PAI_STORAGE_USER="").JupyterHub.services
    assert "--storage-user" not in scheduler["command"]


def test_more_options_reach_the_scheduler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = parse_settings(
        ["--scheduler-options=--start-empty --log-format 'json'", "--folder", str(tmp_path)]
    )
    more = asked.environment()["PAI_SCHEDULER_OPTIONS"]
    (scheduler, *_) = load(monkeypatch, tmp_path, PAI_SCHEDULER_OPTIONS=more).JupyterHub.services
    assert scheduler["command"][-3:] == ["--start-empty", "--log-format", "json"]


def test_the_ssh_gateway_is_at_the_port_that_was_chosen_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chosen = parse_settings(["--folder", str(tmp_path)]).environment()["PAI_SSH_PORT"]
    (scheduler, *_) = load(monkeypatch, tmp_path, PAI_SSH_PORT=chosen).JupyterHub.services
    place = scheduler["command"].index("--ssh-port")
    assert scheduler["command"][place : place + 2] == ["--ssh-port", chosen]
    (scheduler, *_) = load(monkeypatch, tmp_path, PAI_SSH_PORT="").JupyterHub.services
    assert "--ssh-port" not in scheduler["command"]


def test_the_login_page_says_what_a_shared_password_means(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = load(monkeypatch, tmp_path).JupyterHub
    assert config.authenticator_class == "shared-password"
    assert "everybody who has the password can be anybody" in config.template_vars["announcement_login"]


def test_the_form_has_an_address_to_ask(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    config = load(monkeypatch, tmp_path)
    assert config.JupyterHub.extra_handlers == [
        (PATTERN, ChoosingHandler),
        (CHANGES_PATTERN, AvailabilityHandler),
    ]
    assert "profiles" not in config.PAISpawner


def test_profiles_come_from_a_file_and_wrong_ones_end_the_start(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    example = CONFIG.parent / "examples" / "profiles.yaml"
    config = load(monkeypatch, tmp_path, PAI_PROFILES=str(example))
    assert config.PAISpawner.profiles[0]["display_name"]["en"] == "Write and explore"
    services = CONFIG.parent / "examples" / "services.yaml"
    config = load(monkeypatch, tmp_path, PAI_PROFILES=str(services))
    assert all("service" in profile for profile in config.PAISpawner.profiles[1:])
    wrong = tmp_path / "profiles.yaml"
    for text, sentence in (
        ("- {display_name: A, colour: red}", "profiles[0]: there is no “colour” here."),
        ("a: 1", "profiles"),
        (
            "- {display_name: A, defaults: {cpus: 0}}",
            "cpus: 0 is wrong; it must be a number of CPUs",
        ),
    ):
        wrong.write_text(text)
        with pytest.raises(SystemExit) as ended:
            load(monkeypatch, tmp_path, PAI_PROFILES=str(wrong))
        assert sentence in str(ended.value)
