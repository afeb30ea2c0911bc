"""The kernels on offer that run as jobs, beside those that are installed; nobody waits for them."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from jupyter_client.kernelspec import KernelSpec, KernelSpecManager, NoSuchKernel
from traitlets import default

from .settings import PAIKernels

if TYPE_CHECKING:
    from .offers import KernelOffer

PREFIX = "pai"
PROVISIONER = "pai-provisioner"
#: Seconds after which the cluster is asked again what it has.
_OLD = 60.0


class JobKernelSpecs(KernelSpecManager):
    """Adds kernels that run as jobs. Nobody waits for the scheduler: what it said last is listed."""

    _offered: Mapping[str, KernelSpec]
    #: of what is offered: what the kernel itself is called, and the choice
    _choices: Mapping[str, tuple[str, KernelOffer]]
    _kept: dict[str, KernelSpec]
    _asked_at: float = float("-inf")
    _asking: asyncio.Task[None] | None = None
    _settings: PAIKernels | None = None

    def __init__(self, **kwargs: Any) -> None:
        self._offered, self._choices, self._kept = {}, {}, {}
        super().__init__(**kwargs)

    @default("whitelist")
    def _no_whitelist(self) -> set[str]:
        return set()

    @property
    def settings(self) -> PAIKernels:
        """Return the settings of kernels that are jobs."""
        if self._settings is None:
            self._settings = PAIKernels(parent=self)
        return self._settings

    def find_kernel_specs(self) -> dict[str, str]:
        """List the kernels by name, with the folder of each one's pictures."""
        found: dict[str, str] = super().find_kernel_specs()
        self.refresh()
        self._write_titles()
        return {**found, **{name: spec.resource_dir for name, spec in self._offered.items()}}

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        """Return a kernel by its name; NoSuchKernel."""
        spec = self._offered.get(kernel_name) or self._kept.get(kernel_name)
        return spec if spec is not None else super().get_kernel_spec(kernel_name)

    def keep(self, name: str, config: Mapping[str, Any]) -> None:
        """Know the kernel of a job that runs, whatever is on offer now; NoSuchKernel."""
        base = next(
            (each for each in self.settings.kernels if name.startswith(f"{PREFIX}-{each}-")), "python3"
        )
        role = config["taskRoles"][0]
        settings = {
            "gpus": role["gpuNumber"],
            "gpu_type": config.get("gpuType", ""),
            "memory_mb": role["memoryMB"],
        }
        self._kept[name] = self._spec(self._installed(base), name, settings)

    def refresh(self) -> None:
        """Ask the scheduler again, unless that was done just now; nobody waits for the answer."""
        ours = self.settings
        if not ours.enabled or not ours.token or self._asking is not None:
            return
        if time.monotonic() - self._asked_at < _OLD:
            return
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        self._asked_at = time.monotonic()
        self._asking = loop.create_task(self._ask())

    async def _ask(self) -> None:
        try:
            server: Any = self.parent
            service = await server.kernel_manager.pai_service()
            offering = await asyncio.to_thread(import_module, ".offers", __package__)
            choices = await offering.offered(service)
        except Exception as error:
            # without the scheduler there are no such kernels
            self.log.info("No kernels are offered that run as jobs: %s", error)
            self._offered, self._choices = {}, {}
        else:
            self._offer(choices)
        finally:
            self._asking = None

    def _offer(self, choices: list[KernelOffer]) -> None:
        specs, chosen = {}, {}
        for installed in self.settings.kernels:
            try:
                base = self._installed(installed)
            except NoSuchKernel:
                continue
            for choice in choices:
                name = f"{PREFIX}-{installed}-{choice.name}"
                specs[name] = self._spec(base, name, choice.settings)
                chosen[name] = _name_of(base), choice
        self._offered, self._choices = specs, chosen
        self._write_titles()

    def _write_titles(self) -> None:
        """Call what is offered by names in the language that its person reads now."""
        if self._choices:
            title = import_module(".offers", __package__).title
            for name, (kernel, choice) in self._choices.items():
                self._offered[name].display_name = title(kernel, choice)

    def _spec(self, base: KernelSpec, title: str, settings: Mapping[str, Any]) -> KernelSpec:
        described = base.to_dict()
        provisioner = {"provisioner_name": PROVISIONER, "config": dict(settings)}
        described["metadata"] = {**described.get("metadata", {}), "kernel_provisioner": provisioner}
        described["display_name"] = title
        return KernelSpec(resource_dir=base.resource_dir, **described)

    def _installed(self, name: str) -> KernelSpec:
        return super().get_kernel_spec(name)


def _name_of(spec: KernelSpec) -> str:
    return re.sub(r" \(ipykernel\)$", "", str(spec.display_name))
