from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_server.gateway.gateway_client import GatewayClient
from jupyter_server.serverapp import ServerApp
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from traitlets.config import Config

from pai_labextension.kernels.manager import JobKernelsManager, JobSessionManager
from pai_labextension.kernels.setup import use_job_kernels
from pai_labextension.kernels.specs import JobKernelSpecs
from pai_labextension.kernels.websocket import JobKernelConnection

CLASSES = (
    "kernel_manager_class",
    "session_manager_class",
    "kernel_websocket_connection_class",
    "kernel_spec_manager_class",
)


class CondaSpecs(KernelSpecManager):
    """Knows more places where kernels are."""

    def find_kernel_specs(self) -> dict[str, str]:
        return {**super().find_kernel_specs(), "conda-env": "/opt/conda"}


@pytest.fixture
def make(tmp_path: Path) -> Any:
    def made(**sections: Any) -> ServerApp:
        app = ServerApp(config=Config(sections), root_dir=str(tmp_path))
        use_job_kernels(app)
        return app

    yield made
    GatewayClient.clear_instance()


def test_a_server_that_nobody_changed_has_kernels_that_are_jobs(make: Any) -> None:
    app = make()
    assert app.kernel_manager_class is JobKernelsManager
    assert app.session_manager_class is JobSessionManager
    assert app.kernel_websocket_connection_class is JobKernelConnection
    assert app.kernel_spec_manager_class is JobKernelSpecs


@pytest.mark.parametrize(
    "sections",
    [
        {"PAIKernels": {"enabled": False}},
        {"ServerApp": {"kernel_manager_class": AsyncMappingKernelManager}},
        {"GatewayClient": {"url": "http://gateway.example"}},
    ],
    ids=["not wanted", "another manager", "a gateway"],
)
def test_who_has_chosen_otherwise_keeps_that(make: Any, sections: dict[str, Any]) -> None:
    app = make(**sections)
    ours = (JobKernelsManager, JobSessionManager, JobKernelConnection, JobKernelSpecs)
    # the others are defaults still, which cannot be asked for before it is initialized
    assert not [name for name in CLASSES if app.trait_has_value(name) and getattr(app, name) in ours]


def test_the_kernels_that_another_list_knows_stand_beside_ours(make: Any) -> None:
    app = make(ServerApp={"kernel_spec_manager_class": CondaSpecs})
    assert issubclass(app.kernel_spec_manager_class, JobKernelSpecs)
    assert "conda-env" in app.kernel_spec_manager_class(parent=app).find_kernel_specs()
