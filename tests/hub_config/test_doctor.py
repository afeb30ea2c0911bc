"""`make doctor`, the Hub's side, asked about a real Hub."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.hub import PATIENCE, REPOSITORY, Hub


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    made = Hub(tmp_path)
    yield made
    made.stop()


def ask(hub: Hub, engine: str = "process") -> tuple[int, str]:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "hub_config.doctor"),
            *("--folder", str(hub.folder), "--port", str(hub.port), "--engine", engine),
        ],
        cwd=REPOSITORY,
        env={**os.environ, **hub.environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_a_hub_that_runs_is_well_and_each_wrong_thing_is_named(hub: Hub) -> None:
    code, said = ask(hub)
    assert code == 0, said
    assert "The Hub does not run" in said
    # it only looks
    assert sorted(path.name for path in hub.folder.iterdir()) == ["ports.json"]

    hub.start()
    code, said = ask(hub)
    assert code == 0, said
    for line in (
        "  ok    The Hub answers at ",
        "  ok    The proxy answers at ",
        "  ok    The scheduler answers at ",
        "  ok    The Hub takes the token of its service pai-spawner.",
        "  ok    The secret of cookies in ",
        "  ok    The Hub's database ",
        "  ok    The sessions file ",
    ):
        assert line in said

    secrets = hub.folder / "secrets"
    kept = {file: file.read_text() for file in secrets.iterdir()}
    for file in kept:
        file.write_text("f" * 64)
    code, said = ask(hub)
    assert code == 1
    assert "does not take the Hub's token" in said
    assert "does not take the spawner's token" in said
    assert "WRONG The Hub does not take the token of its service pai-spawner." in said
    for file, secret in kept.items():
        file.write_text(secret)

    (hub.folder / "hub" / "cookie_secret").chmod(0o644)
    code, said = ask(hub)
    assert (code, "WRONG Others may read the secret of cookies" in said) == (1, True), said
    (hub.folder / "hub" / "cookie_secret").chmod(0o600)

    started = psutil.Process(int((hub.folder / "lock").read_text().split()[0])).children()
    (scheduler,) = (child for child in started if "pai-scheduler" in " ".join(child.cmdline()))
    scheduler.suspend()
    try:
        code, said = ask(hub)
    finally:
        scheduler.resume()
    assert code == 1
    assert "WRONG The scheduler does not answer at " in said
    assert "journalctl -u pai-scheduler" in said


def test_a_container_of_the_hubs_image_reaches_the_hub_as_the_scheduler_forwards(docker_hub: Hub) -> None:
    code, said = ask(docker_hub, "docker")
    assert code == 0, said
    image = docker_hub.environment["PAI_NOTEBOOK_IMAGE"]
    assert f"  ok    The image of “PAI notebook” is here: {image}." in said
    assert "  ok    A container reaches the Hub at http://" in said
