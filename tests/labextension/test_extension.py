"""The extension as jupyter_server and JupyterLab find it: enabled, configured, light, translated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from jupyter_server.extension.config import ExtensionConfigManager
from jupyterlab_server.translation_utils import get_language_pack

from pai_labextension import PAIExtension
from pai_scheduler.rest.address import DEFAULT_URL


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    for name in ("PAI_API_URL", "PAI_TOKEN", "JUPYTERHUB_API_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def test_it_is_enabled_by_its_installation():
    folder = Path(sys.prefix) / "etc" / "jupyter"
    enabled = ExtensionConfigManager(read_config_path=[str(folder)]).get_jpserver_extensions()
    assert enabled["pai_labextension"] is True


def test_alone_it_looks_for_a_scheduler_on_this_machine_and_has_no_token():
    extension = PAIExtension()
    assert (extension.api_url, extension.token) == (DEFAULT_URL, "")


def test_behind_the_hub_it_uses_the_token_that_the_hub_gave(monkeypatch):
    monkeypatch.setenv("PAI_API_URL", "http://127.0.0.1:8000/services/pai")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "from-the-hub")
    extension = PAIExtension()
    assert (extension.api_url, extension.token) == ("http://127.0.0.1:8000/services/pai", "from-the-hub")


def test_a_token_made_for_pai_comes_before_the_hubs(monkeypatch):
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "from-the-hub")
    monkeypatch.setenv("PAI_TOKEN", "for-pai")
    assert PAIExtension().token == "for-pai"


#: What the kernel, the client and the ways into tasks need, and a notebook server that nobody asks does not.
HEAVY = {
    "aiohttp", "alembic", "asyncssh", "cryptography", "hdfs", "httpx", "ipywidgets", "jupyterhub",
    "sqlalchemy", "wcmatch",
}  # fmt: skip
#: Starts a Jupyter server with the extension as a person's is started, up to where it listens.
START = """
import sys
from jupyter_server.serverapp import ServerApp
from traitlets.config import Config

before = set(sys.modules)
config = Config({"ServerApp": {"jpserver_extensions": {"pai_labextension": True}}})
app = ServerApp(config=config, root_dir=sys.argv[1], allow_root=True, open_browser=False)
app.initialize(argv=[], find_extensions=False, new_httpserver=False)
assert app.extension_manager.extension_apps["pai_labextension"]
print(*sorted({name.partition(".")[0] for name in sys.modules.keys() - before}))
print(*(name for name in sys.modules if name.startswith("pai_")))
"""


def test_a_bare_import_loads_nothing():
    code = "import sys, pai_labextension; print(*(name.partition('.')[0] for name in sys.modules))"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert (HEAVY | {"jupyter_server", "pai_scheduler", "tornado"}) & set(loaded) == set()


@pytest.mark.daemon
def test_a_server_that_starts_loads_nothing_that_is_not_needed_yet(tmp_path):
    environment = {**os.environ, "JUPYTER_NO_CONFIG": "1"}
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        environment[name] = str(tmp_path / name)
    loaded, ours = subprocess.check_output(
        [sys.executable, "-c", START, str(tmp_path)], text=True, env=environment, stderr=subprocess.DEVNULL
    ).splitlines()[-2:]
    assert HEAVY & set(loaded.split()) == set()
    assert set(ours.split()) == {
        "pai_labextension", "pai_labextension.extension", "pai_labextension.session.disk_full",
            "pai_labextension.lazy_routes",
            # what notices from a kernel's start on that memory has cost it
            "pai_labextension.session.memory", "pai_labextension.session", "pai_labextension.session.address",
        # what lists kernels and starts them; how they become jobs is loaded with the first one
        "pai_labextension.kernels", "pai_labextension.kernels.manager",
        "pai_labextension.kernels.provisioner",
        "pai_labextension.kernels.settings",
        "pai_labextension.kernels.specs", "pai_labextension.kernels.setup",
        "pai_labextension.kernels.websocket",
        "pai_labextension.own_python",
        "pai_scheduler", "pai_scheduler.own_packages", "pai_scheduler.rest", "pai_scheduler.rest.address",
    }  # fmt: skip


def test_an_unknown_name_is_no_attribute():
    with pytest.raises(ImportError, match="NoSuchWidget"):
        from pai_labextension import NoSuchWidget  # noqa: F401


def test_jupyterlab_finds_the_front_ends_chinese():
    packs, message = get_language_pack("zh_CN")
    assert message == ""
    assert packs["pai_labextension"]["New PAI job"] == ["新建 PAI 作业"]
