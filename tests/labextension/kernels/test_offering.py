"""What a person is offered: by a real scheduler, and how it is called."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from traitlets.config import Config

from pai_labextension.kernels.offers import KernelOffer, WrongChoiceError, offered, title
from pai_labextension.kernels.service import KernelService
from pai_labextension.kernels.settings import PAIKernels
from pai_scheduler.client.rest import ApiError, UnreachableError
from pai_scheduler.i18n import msg
from tests.testbed.warm import WarmScheduler

P100 = KernelOffer("1-p100", msg("{count} × {type}", count=1, type="P100"), {})


def service_at(url: str, *, who: str = "alice", **kernels: object) -> KernelService:
    sections = {"PAIExtension": {"api_url": url, "token": f"token-of-{who}"}, "PAIKernels": kernels}
    return KernelService(PAIKernels(config=Config(sections)))


@pytest.fixture(autouse=True)
def english_outside_of_a_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path))
    for name in ("PAI_JOB_NAME", "PAI_LOCALE", "LC_ALL", "LC_MESSAGES", "LANG", "LANGUAGE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def service(gpu_lab: WarmScheduler) -> AsyncIterator[KernelService]:
    service = service_at(gpu_lab.url)
    yield service
    await service.close()


async def test_each_type_of_gpu_that_the_cluster_has_is_offered(service: KernelService) -> None:
    found = await offered(service)
    assert [choice.name for choice in found] == ["1-p100", "1-titanx"]
    assert [choice.settings["virtual_cluster"] for choice in found] == ["default", "default"]
    assert title("Python 3", found[0]) == "Python 3 on 1 × P100 (simulated)"


async def test_an_administrators_choice_stands_in_place_of_them(gpu_lab: WarmScheduler) -> None:
    service = service_at(gpu_lab.url, choices=[{"title": "a big one", "memory_mb": 4096}])
    found = await offered(service)
    assert [(choice.name, choice.what, choice.settings) for choice in found] == [
        ("a-big-one", "a big one", {"memory_mb": 4096})
    ]
    await service.close()


async def test_a_choice_is_called_by_a_name_in_the_persons_language(
    service: KernelService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAI_LOCALE", "zh_CN")
    found = await offered(service)
    assert title("Python 3", found[0]) == "Python 3，1 × P100（模拟）"


async def test_what_hinders_it_is_raised_for_who_asked(gpu_lab: WarmScheduler) -> None:
    for service, error in (
        (service_at("http://127.0.0.1:9"), UnreachableError),
        (service_at(gpu_lab.url, who="nobody"), ApiError),
        (service_at(gpu_lab.url, choices=[{"gpu": 1}]), WrongChoiceError),
    ):
        with pytest.raises(error):
            await offered(service)
        await service.close()


def test_a_title_says_what_the_kernel_runs_on() -> None:
    assert title("Python 3", P100) == "Python 3 on 1 × P100"
    assert title("R", KernelOffer("big", "the big one", {})) == "R on the big one"
