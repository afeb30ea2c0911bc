"""A user's persistent folder on the machine of the process engine, with the tutorials in it."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path
from urllib.parse import quote

#: Bytes of a file name, which file systems limit to 255; a quoted Chinese character takes nine.
_LONGEST_NAME = 200


def prepare_home(homes: str, user: str, tutorials: str = "") -> Path:
    """Make the user's folder and what is missing of its `tutorials`; return its absolute path.

    Files a user has changed or made are never touched.
    """
    home = home_of(homes, user)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    source = Path(tutorials)
    if tutorials and source.is_dir():
        for file in source.rglob("*"):
            part = file.relative_to(source)
            if any(name.startswith(".") for name in part.parts):
                continue
            copy = home / "tutorials" / part
            if file.is_dir():
                copy.mkdir(parents=True, exist_ok=True)
            elif not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, copy)
    return home


def home_of(homes: str, user: str) -> Path:
    """Return a user's folder; no user name leads anywhere else, or to another's folder."""
    name = quote(user, safe="")
    if name.startswith("."):
        name = "%2E" + name[1:]
    if len(name) > _LONGEST_NAME:
        digest = hashlib.sha256(user.encode()).hexdigest()
        name = f"{name[: _LONGEST_NAME - len(digest) - 1]}-{digest}"
    return Path(homes).resolve() / name
