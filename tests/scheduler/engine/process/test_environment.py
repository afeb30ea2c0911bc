"""What a task takes over from the service, and which GPUs it is shown."""

from __future__ import annotations

import os
import pwd
import sys
from pathlib import Path

import pytest

from pai_scheduler.cluster.node import Gpu
from pai_scheduler.engine.process.environment import inherited, visible_gpus

BINARIES = str(Path(sys.executable).parent)
ACCOUNT = pwd.getpwuid(os.getuid())


def test_secrets_and_what_is_the_services_own_are_not_handed_on() -> None:
    given = {
        "HOME": "/home/alice",
        "PAI_TOKEN": "x",
        "JPY_API": "x",
        "AWS_SECRET_KEY": "x",
        "db_password": "x",
    }
    assert inherited(given).keys() == {"HOME", "PATH"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [({"HOME": "/home/alice"}, "/home/alice"), ({}, ACCOUNT.pw_dir), ({"HOME": ""}, ACCOUNT.pw_dir)],
)
def test_there_is_a_home_though_a_service_of_the_hub_has_none(given: dict[str, str], expected: str) -> None:
    assert inherited(given)["HOME"] == expected


def test_an_account_without_a_name_has_a_home_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    assert inherited({})["HOME"] == "/"


@pytest.mark.parametrize(
    ("path", "expected"),
    [("/bin", f"{BINARIES}:/bin"), (f"/bin:{BINARIES}:/usr", f"{BINARIES}:/bin:/usr")],
)
def test_the_services_python_comes_first_on_the_path_and_once(path: str, expected: str) -> None:
    assert inherited({"PATH": path})["PATH"] == expected


def test_a_simulated_gpu_does_not_uncover_a_real_one() -> None:
    simulated = [Gpu(0, "P100", "simulated-0", simulated=True)]
    assert visible_gpus(simulated, real_ones_here=True)["CUDA_VISIBLE_DEVICES"] == ""
    assert visible_gpus(simulated, real_ones_here=False)["CUDA_VISIBLE_DEVICES"] == "0"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"no_proxy": "a,b", "NO_PROXY": ""}, {"no_proxy": "a,b,storage", "NO_PROXY": "storage"}),
        ({"https_proxy": "http://p"}, {"https_proxy": "http://p", "no_proxy": "storage"}),
        ({}, {}),
    ],
)
def test_the_storage_is_reached_past_the_proxies_where_there_are_any(
    given: dict[str, str], expected: dict[str, str]
) -> None:
    taken = inherited(given, "storage")
    assert {name: taken[name] for name in taken if name.lower().endswith("_proxy")} == expected
