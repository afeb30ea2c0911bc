"""Addresses for the browser."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import unquote

import pytest

from pai_labextension.proxy.forwarding import target
from pai_labextension.widgets.links import log_link, port_link, server_prefix
from pai_labextension.widgets.log_follow import LogChoice


def test_the_hub_says_where_the_server_is() -> None:
    assert server_prefix({"JUPYTERHUB_SERVICE_PREFIX": "/user/alice/"}) == "/user/alice/"


def test_a_server_that_runs_alone_is_found_by_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "jpserver-42.json").write_text(json.dumps({"base_url": "/lab/"}))
    assert server_prefix({"JPY_PARENT_PID": "42"}) == "/lab/"
    assert server_prefix({"JPY_PARENT_PID": "43"}) is None
    assert server_prefix({"JPY_PARENT_PID": "../x"}) is None
    assert server_prefix({}) is None


def test_the_link_to_a_log_is_one_that_the_server_extension_forwards() -> None:
    link = log_link("/user/alice/", "王 小", "job~1", LogChoice("a.b", 3, "stderr", 1, live=False))
    prefix, path, query = "/user/alice/pai/api/v1/", *link.split("?")
    assert path.startswith(prefix)
    assert target("GET", unquote(path.removeprefix(prefix)), query).query == "attempt=1"


def test_the_link_to_a_port_holds_whatever_a_user_is_called() -> None:
    link = port_link("/user/alice/", "王 小/明", "job~1", "worker-0", "web")
    assert link == "/user/alice/pai/ports/%E7%8E%8B%20%E5%B0%8F%2F%E6%98%8E/job~1/worker-0/web/"
