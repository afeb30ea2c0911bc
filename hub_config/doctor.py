"""`make doctor`, the Hub's side: asks `pai-hub doctor` with what `make run` has decided for this folder."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from pai_spawner.doctor.program import examine

from .run import parse_settings
from .settings import Settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Take the words of `make run`; 1 where something is wrong."""
    settings = parse_settings(arguments)
    config = settings.config or Path(__file__).with_name("jupyterhub_config.py")
    # a configuration reads them there
    os.environ.update(as_decided(settings))
    return examine(config, settings.folder / "hub", os.environ)


def as_decided(settings: Settings) -> dict[str, str]:
    """Return what the configuration reads, as it was at the last start; nothing is made, as a start would."""
    secrets, ports_file = settings.folder / "secrets", settings.folder / "ports.json"
    ports: dict[str, int] = json.loads(ports_file.read_text()) if ports_file.exists() else {}

    def kept(name: str) -> str:
        file = secrets / name
        return file.read_text() if file.exists() else ""

    return {
        **settings.decided(),
        "PAI_SPAWNER_TOKEN": kept("spawner-token"),
        "CONFIGPROXY_AUTH_TOKEN": kept("proxy-token"),
        **{name: str(port) for name, port in ports.items()},
    }


if __name__ == "__main__":
    raise SystemExit(main())
