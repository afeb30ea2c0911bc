"""The extension as jupyter_server and JupyterLab find it: enabled, configured, light, translated."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from jupyter_server.extension.config import ExtensionConfigManager
from jupyterlab_server.translation_utils import get_language_pack

from pai_labextension import PAIExtension
from pai_scheduler.client import DEFAULT_URL

PACKAGE = Path(__file__).parents[2] / "pai_labextension"


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


@pytest.mark.parametrize(
    ("use", "loaded"),
    [
        ("pai_labextension", []),
        ("pai_labextension._jupyter_server_extension_points()", ["jupyter_server", "httpx"]),
    ],
)
def test_a_server_loads_no_widgets_and_a_bare_import_loads_nothing(use, loaded):
    heavy = ("ipywidgets", "jupyter_server", "httpx")
    code = f"import sys, pai_labextension\n{use}\nprint(*(name for name in {heavy} if name in sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).split() == loaded


def test_an_unknown_name_is_no_attribute():
    with pytest.raises(ImportError, match="NoSuchWidget"):
        from pai_labextension import NoSuchWidget  # noqa: F401


def test_every_sentence_of_the_server_side_is_translated():
    with (PACKAGE / "locale" / "zh_CN.po").open("rb") as stream:
        catalog = {entry.id: entry.string for entry in read_po(stream) if entry.id}
    sentences = re.findall(r'msg\(\s*"([^"]+)"', (PACKAGE / "handlers.py").read_text(encoding="utf-8"))
    assert len(sentences) >= 6
    for sentence in sentences:
        assert catalog.get(sentence), f"not translated: {sentence}"
        assert set(re.findall(r"{\w+}", catalog[sentence])) == set(re.findall(r"{\w+}", sentence))


def test_jupyterlab_finds_the_front_ends_chinese():
    packs, message = get_language_pack("zh_CN")
    assert message == ""
    assert packs["pai_labextension"]["New PAI job"] == ["新建 PAI 作业"]
