"""Addresses that the browser can open: the scheduler's API and ports of tasks, behind the notebook server."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from jupyter_core.paths import jupyter_runtime_dir

from .log_follow import LogChoice


def server_prefix(environment: Mapping[str, str] = os.environ) -> str | None:
    """Find under which path the browser reaches the notebook server of this kernel; None where none is known.

    The Hub tells it; a server that runs alone writes it beside its process id.
    """
    prefix = environment.get("JUPYTERHUB_SERVICE_PREFIX")
    if prefix:
        return prefix
    parent = environment.get("JPY_PARENT_PID", "")
    if not parent.isdecimal():
        return None
    try:
        info = json.loads(
            (Path(jupyter_runtime_dir()) / f"jpserver-{parent}.json").read_text(encoding="utf-8")
        )
    except (OSError, ValueError):
        return None
    return str(info["base_url"]) if isinstance(info, dict) and "base_url" in info else None


def log_link(prefix: str, user: str, job: str, choice: LogChoice) -> str:
    """Return the address of a log as a whole."""
    parts = [
        "user",
        user,
        "jobs",
        job,
        "taskRoles",
        choice.role,
        "tasks",
        str(choice.index),
        "logs",
        choice.stream,
    ]
    path = "/".join(quote(part, safe="") for part in parts)
    return f"{prefix.rstrip('/')}/pai/api/v1/{path}?attempt={choice.attempt}"


def port_link(prefix: str, user: str, job: str, task: str, label: str) -> str:
    """Return the address of what listens on a port of a task; `task`: `<role>-<index>`."""
    path = "/".join(quote(part, safe="") for part in (user, job, task, label))
    return f"{prefix.rstrip('/')}/pai/ports/{path}/"
