"""Settings: the scheduler's by its parser, with a file to begin from; the spawner's by its traits."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import yaml
from traitlets import TraitType

from pai_scheduler.server.options import FOR_ONE_START, make_parser, settings_of
from pai_spawner.settings import SpawnerSettings

from .environment import PageError

#: The file that comes with the Hub's configuration, as a path within docs/.
FILE = "../hub_config/scheduler.yaml"
_WIDTH = 110
#: A value for each setting without a default, or whose default is no example.
_EXAMPLES: Mapping[str, object] = {
    "data-dir": "/var/lib/pai/scheduler",
    "database": "postgresql://pai@db.example.org:5432/pai?passfile=/etc/pai/pgpass",
    "host": "127.0.0.1",
    "port": 9186,
    "cluster": "cluster.yaml",
    "tokens": "tokens.json",
    "admin-service": ["pai-spawner", "pai-sessions"],
    "front-door-port": 8000,
    "agent-image": "registry.example.org/pai/agent:latest",
    "runtime-image": "registry.example.org/pai/runtime:latest",
    "homes": "/srv/homes",
    "home-gb": 50,
    "tunnel-processes": 4,
    "ssh-port": 2222,
    "ssh-public-host": "gpu.example.org",
    "ssh-processes": 4,
    "publish-ssh": "192.0.2.10",
    "storage": "/srv/storage",
    "storage-user": "pai",
    "file-processes": 4,
    "default-fs-uri": "hdfs://namenode:9000",
    "webhook-host": ["hooks.example.org", "chat.example.org:8443"],
    "webhook-secret-file": "webhook-secret",
    "mail-server": "mail.example.org:587",
    "mail-user": "pai",
    "mail-password-file": "mail-password",
    "mail-from": "pai@example.org",
    "mail-to": "{user}@example.org",
    "mail-recipient": ["*@example.org"],
    "metrics-token-file": "metrics-token",
}
_HEAD = """\
# The scheduler's settings (pai-scheduler --config FILE): remove the # before those that you set.
# Each is the option of the same name; what the command line says wins. A relative path begins at this file's
# folder. Made by `make docs` from the scheduler's own options; docs/administrators/scheduler-settings.md has
# them as a table.
"""


def facts(_locale: str) -> Mapping[str, Any]:
    """Return what the page about the settings file says in facts."""
    return {
        "settings": [(name, _one_line({name: example}), about) for name, example, about in _settings()],
        "one_start": FOR_ONE_START,
    }


def of_the_spawner(_locale: str) -> Mapping[str, Any]:
    """Return what the page about the Hub says of the spawner's settings, in the order of their class."""
    traits = SpawnerSettings.class_traits(config=True)
    order = [name for name in vars(SpawnerSettings) if name in traits]
    return {"settings": [(name, _default(traits[name]), _about(traits[name])) for name in order]}


def _default(trait: TraitType[Any, Any]) -> str:
    value = trait.default()
    return "" if value in ("", [], {}) else f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _about(trait: TraitType[Any, Any]) -> str:
    # (a page is one place where it stands, another one is a terminal)
    return " ".join(str(trait.help).split()).replace(
        "`docs/administrators/hub.md` describes them, and", "[Below](#profiles);"
    )


def file() -> str:
    """Write a settings file in which every setting stands as a comment, with its meaning."""
    parts = [_HEAD]
    for name, example, about in _settings():
        meaning = textwrap.fill(about, _WIDTH, initial_indent="# ", subsequent_indent="# ")
        parts.append(f"{meaning}\n#{_one_line({name: example})}\n")
    return "\n".join(parts)


def _settings() -> Iterator[tuple[str, object, str]]:
    """Return name, an example and the meaning of each setting; PageError where there is none."""
    parser = make_parser()
    formatter = parser._get_formatter()
    for name, action in settings_of(parser).items():
        example = _EXAMPLES.get(name, True if action.nargs == 0 else action.default)
        if example is None or not action.help:
            raise PageError(f"docs/generate/scheduler_settings.py has no example of {name}, or it no meaning")
        yield name, example, _meaning(formatter, action)


def _meaning(formatter: argparse.HelpFormatter, action: argparse.Action) -> str:
    # (its default is another one for each account)
    about = formatter._expand_help(action)
    return (
        about.replace(str(action.default), "a folder in the account's home")
        if action.dest == "data_dir"
        else about
    )


def _one_line(setting: Mapping[str, object]) -> str:
    # (in braces, so that a list stays in the line; they are no part of it)
    return yaml.safe_dump(setting, default_flow_style=True, width=1000).strip()[1:-1]
