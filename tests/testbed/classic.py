"""`jupyter notebook` as the documents' images have it: the classic notebook, in an environment of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

from tests.testbed.machine import CACHE, CannotError, locked, say

#: Of the classic notebook's time. Later traitlets take quotes on a command line for a part of the value,
#: which gives the documents' job a token of two quotation marks.
_PACKAGES = (
    *("notebook==6.4.12", "traitlets<5", "ipykernel<6", "ipython<8", "jupyter_client<7", "jupyter_core<5"),
    *("nbconvert<6", "nbformat<5.2", "jinja2<3.1", "mistune<1", "terminado<0.13"),
    *("tornado<6.2", "setuptools<70"),
)
#: Tasks of the process engine have no network of their own: nobody is to reach what asks for no password.
_PROGRAM = """#!/bin/sh
for argument do
  shift
  [ "$argument" = 0.0.0.0 ] && argument=127.0.0.1
  set -- "$@" "$argument"
done
PATH={programs}:$PATH exec {programs}/jupyter "$@"
"""


def jupyter_notebook(folder: Path) -> None:
    """Put a program `jupyter` into a folder for PATH, which knows `jupyter notebook`."""
    place = CACHE / "classic-notebook"
    with locked("classic-notebook"):
        complete = place / "complete"
        if not complete.exists() or complete.read_text() != "\n".join(_PACKAGES):
            say(f"installing {_PACKAGES[0]} into {place}")
            shutil.rmtree(place, ignore_errors=True)
            venv.create(place, with_pip=True)
            pip = [str(place / "bin" / "python"), "-m", "pip", "install", "-q", *_PACKAGES]
            if subprocess.run(pip, stdout=sys.stderr).returncode != 0:
                raise CannotError(f"pip could not install {_PACKAGES[0]}")
            complete.write_text("\n".join(_PACKAGES))
    program = folder / "jupyter"
    program.write_text(_PROGRAM.format(programs=place / "bin"))
    program.chmod(0o755)
