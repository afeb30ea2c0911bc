"""The files in a person's ~/.ssh that are ours: ~/.ssh/pai, and one line in ~/.ssh/config that reads it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pai_scheduler.client.storage.transfer import LocalFileError
from pai_scheduler.i18n import msg

#: What `Include` of OpenSSH finds beside the file it stands in.
_INCLUDE = "Include pai/config"
_AT_THE_TOP = f"{_INCLUDE}\n\n"
_IS_INCLUDE = re.compile(r'\s*Include(\s+|\s*=\s*)"?pai/config"?\s*', re.IGNORECASE)
#: What follows holds for some hosts only.
_BEGINS_BLOCK = re.compile(r"\s*(Host|Match)\b", re.IGNORECASE)


class SshFolder:
    """Somebody's `~/.ssh`. LocalFileError where it cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ours = path / "pai"
        self.known_hosts = self._ours / "known_hosts"
        self.config = self._ours / "config"

    def key_path(self, name: str) -> Path:
        """Return the place of a job's key."""
        return self._ours / "keys" / name

    def write(self, config: str, known_hosts: str, keys: Mapping[str, str]) -> None:
        """Write our files, each at once; remove the keys of others than these jobs; be read by ssh."""
        try:
            for folder in (self.path, self._ours, self._ours / "keys"):
                folder.mkdir(mode=0o700, exist_ok=True)
            for name, key in keys.items():
                write_private(self.key_path(name), key)
            write_private(self.known_hosts, known_hosts)
            write_private(self.config, config)
            for file in (self._ours / "keys").iterdir():
                if file.name not in keys:
                    file.unlink()
            self._include()
        except OSError as error:
            raise _unwritable(self.path, error) from None

    def remove(self) -> None:
        """Remove our files and our line."""
        try:
            if self._ours.is_dir():
                shutil.rmtree(self._ours)
            text = self._users_config()
            # with the empty line that came with ours
            theirs = text.removeprefix(_AT_THE_TOP)
            kept = "".join(
                line
                for line in theirs.splitlines(keepends=True)
                if not _IS_INCLUDE.fullmatch(line.rstrip("\r\n"))
            )
            if kept != text:
                self._write_users_config(kept)
        except OSError as error:
            raise _unwritable(self.path, error) from None

    def _include(self) -> None:
        """Put our line at the top of the person's own file, where it holds for all hosts, if missing."""
        text = self._users_config()
        for line in text.splitlines():
            if _BEGINS_BLOCK.match(line):
                break
            if _IS_INCLUDE.fullmatch(line):
                return
        self._write_users_config(f"{_AT_THE_TOP}{text}" if text else f"{_INCLUDE}\n")

    def _users_config(self) -> str:
        try:
            # bytes of another encoding stay what they are
            return (self.path / "config").read_bytes().decode("utf-8", "surrogateescape")
        except FileNotFoundError:
            return ""

    def _write_users_config(self, text: str) -> None:
        # where somebody keeps it elsewhere, the link stays a link
        path = (self.path / "config").resolve()
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        write_private(path, text)
        path.chmod(mode)


def write_private(path: Path, text: str) -> None:
    """Write a file that is its owner's alone, whole or not at all; OSError."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    fresh = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8", "surrogateescape"))
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _unwritable(folder: Path, error: OSError) -> LocalFileError:
    return LocalFileError(
        msg(
            "{file} cannot be written: {reason}.",
            file=error.filename or str(folder),
            reason=error.strerror or str(error),
        )
    )
