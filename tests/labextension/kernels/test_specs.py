"""The list of kernels; what the scheduler offers is put into it here, without one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.kernelspec import NoSuchKernel
from jupyter_server.serverapp import ServerApp
from traitlets.config import Config

from pai_labextension.kernels import offers as offers_module
from pai_labextension.kernels.offers import KernelOffer
from pai_labextension.kernels.specs import PROVISIONER, JobKernelSpecs
from pai_scheduler.client.rest import UnreachableError
from pai_scheduler.i18n import msg

P100 = KernelOffer("1-p100", msg("{count} × {type}", count=1, type="P100"), {"gpus": 1, "gpu_type": "P100"})
NAME = "pai-python3-1-p100"


class Offers:
    """What the scheduler says, as often as it is asked; an error, where it does not."""

    def __init__(self) -> None:
        self.asked = 0
        self.choices: list[KernelOffer] | Exception = [P100]

    async def offered(self, _service: object) -> list[KernelOffer]:
        self.asked += 1
        if isinstance(self.choices, Exception):
            raise self.choices
        return self.choices


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_LOCALE", "en")


@pytest.fixture
def offers(monkeypatch: pytest.MonkeyPatch) -> Offers:
    offers = Offers()
    monkeypatch.setattr(offers_module, "offered", offers.offered)
    return offers


MakeSpecs = Callable[..., JobKernelSpecs]


@pytest.fixture
def specs(tmp_path: Path) -> MakeSpecs:
    def make(**kernels: Any) -> JobKernelSpecs:
        config = Config({"PAIExtension": {"token": "mine"}, "PAIKernels": kernels})
        app = ServerApp(config=config, root_dir=str(tmp_path))
        app.kernel_manager = _Kernels()  # type: ignore[assignment]
        return JobKernelSpecs(parent=app)

    return make


class _Kernels:
    async def pai_service(self) -> None:
        return None


async def listed(specs: JobKernelSpecs) -> list[str]:
    """List the kernels as they are when the scheduler has answered."""
    specs.find_kernel_specs()
    if specs._asking is not None:
        await specs._asking
    return sorted(specs.find_kernel_specs())


async def test_what_can_be_had_stands_beside_what_is_installed(specs: MakeSpecs, offers: Offers) -> None:
    found = specs()
    assert sorted(found.find_kernel_specs()) == ["python3"]  # nobody waits for the scheduler
    assert await listed(found) == [NAME, "python3"]
    spec, installed = found.get_kernel_spec(NAME), found.get_kernel_spec("python3")
    assert spec.display_name == "Python 3 on 1 × P100"
    assert (spec.argv, spec.resource_dir) == (installed.argv, installed.resource_dir)
    provisioner = spec.metadata["kernel_provisioner"]
    assert provisioner == {"provisioner_name": PROVISIONER, "config": {"gpus": 1, "gpu_type": "P100"}}
    assert "kernel_provisioner" not in installed.metadata
    assert found.get_all_specs()[NAME]["spec"]["display_name"] == spec.display_name
    # lists are asked for all the time, the scheduler now and then
    assert offers.asked == 1


async def test_a_title_is_in_the_language_that_the_person_reads_now(
    specs: MakeSpecs, offers: Offers, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = specs()
    await listed(found)
    titles = []
    for locale in ("en", "zh_CN", "en"):
        monkeypatch.setenv("PAI_LOCALE", locale)
        titles.append(found.get_all_specs()[NAME]["spec"]["display_name"])
    assert titles == ["Python 3 on 1 × P100", "Python 3，1 × P100", "Python 3 on 1 × P100"]
    assert offers.asked == 1


async def test_without_an_answer_only_what_is_installed_is_listed(specs: MakeSpecs, offers: Offers) -> None:
    offers.choices = UnreachableError("away")
    assert await listed(specs()) == ["python3"]


@pytest.mark.parametrize("kernels", [{"enabled": False}, {"kernels": ["no-such-kernel"]}])
async def test_where_none_are_wanted_none_are_offered(
    specs: MakeSpecs, offers: Offers, kernels: dict[str, Any]
) -> None:
    assert await listed(specs(**kernels)) == ["python3"]
    assert offers.asked == (0 if "enabled" in kernels else 1)


async def test_a_kernel_that_runs_is_known_though_it_is_no_longer_offered(
    specs: MakeSpecs, offers: Offers
) -> None:
    offers.choices = []
    found = specs()
    config = {"gpuType": "P100", "taskRoles": [{"gpuNumber": 1, "memoryMB": 512}]}
    found.keep(NAME, config)
    assert await listed(found) == ["python3"]
    provisioner = found.get_kernel_spec(NAME).metadata["kernel_provisioner"]
    assert provisioner["config"] == {"gpus": 1, "gpu_type": "P100", "memory_mb": 512}
    with pytest.raises(NoSuchKernel):
        found.get_kernel_spec("pai-python3-9-p100")
