"""A person's own Python packages: a virtual environment (PEP 405) in their home, on top of another one.

Kernels, terminals and jobs run in it. JupyterLab and the Hub run in its base, the environment beneath, and
never see it. Its site-packages come first, then the base's. It has no pip of its own: the base's pip, run by
its Python, installs into it, so that making it starts no process.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import site
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

#: Our keys in `pyvenv.cfg`: the Python of the base, and when the packages there changed last, in seconds.
_BASE, _CHANGED = "pai-base", "pai-base-changed"
_BASE_PACKAGES = "pai-base.pth"
_VERSION = "python{}.{}".format(*sys.version_info)
#: Programs of the base that run in the base: they serve, and must work whatever is installed here.
_OF_THE_BASE = ("jupyter", "pai", "python")
_MARK = "# runs what the base has installed"
_ACTIVATE = """\
# Puts this environment first, in sh and bash: `. {folder}/bin/activate`
export VIRTUAL_ENV={folder}
export PATH="$VIRTUAL_ENV/bin:$PATH"
"""
#: As pip writes them: a line that begins with `#!` may not be long enough for the path.
_PROGRAM = """\
#!/bin/sh
'''exec' {python} "$0" "$@"
' '''
{mark}
import sys
from {module} import {name}
if __name__ == "__main__":
    sys.exit({call}())
"""


@dataclass(frozen=True, slots=True)
class OwnPackages:
    """The environment `folder`, whose base is the Python program `base`."""

    folder: Path
    base: Path

    @classmethod
    def in_home(cls, home: Path) -> OwnPackages:
        """Name the one in a home, for this Python."""
        return cls.below(home / ".local" / "share" / "pai")

    @classmethod
    def below(cls, folder: Path) -> OwnPackages:
        """Name the one in a folder, for this Python; another base or build of Python has another."""
        base = Path(sys.prefix)
        kind = f"{base}\0{sysconfig.get_config_var('SOABI')}"
        digest = hashlib.sha256(kind.encode()).hexdigest()[:6]
        name = f"{_VERSION}-{base.name.lstrip('.')[:40]}-{digest}"
        return cls(folder / name, Path(sys.executable))

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> OwnPackages | None:
        """Return the one in a folder; None where there is none."""
        try:
            text = Path(folder, "pyvenv.cfg").read_text()
        except OSError:
            return None
        settings = dict(line.split(" = ", 1) for line in text.splitlines() if " = " in line)
        return cls(Path(folder), Path(settings[_BASE])) if _BASE in settings else None

    @property
    def python(self) -> Path:
        """Return its Python."""
        return self.folder / "bin" / "python"

    @property
    def is_empty(self) -> bool:
        """Return whether nothing has been installed in it."""
        return next(self._packages.glob("*.dist-info"), None) is None

    @property
    def _packages(self) -> Path:
        return self.folder / "lib" / _VERSION / "site-packages"

    def make(self) -> None:
        """Make it, or what is missing or old in it; to be called in its base. OSError.

        Several may do so at the same time: each file is written as a whole.
        """
        config = self._config()
        try:
            if self.python.exists() and (self.folder / "pyvenv.cfg").read_text() == config:
                return
        except FileNotFoundError:
            pass
        programs = self.folder / "bin"
        for folder in (programs, self._packages):
            folder.mkdir(parents=True, exist_ok=True)
        _link(programs / "python", _interpreter())
        for name in ("python3", _VERSION):
            _link(programs / name, "python")
        settings = Path(sys.prefix, "pip.conf")
        if settings.exists():
            # which pip looks for in the environment that it installs into
            _link(self.folder / "pip.conf", str(settings))
        _write(programs / "activate", _ACTIVATE.format(folder=shlex.quote(str(self.folder))))
        if sys.prefix != sys.base_prefix:
            lines = [f"import site; site.addsitedir({place!r})\n" for place in _base_packages()]
            _write(self._packages / _BASE_PACKAGES, "".join(lines))
        for entry in _programs():
            file = programs / entry.name
            if not file.exists() or _MARK in file.read_text(errors="replace"):
                _write(file, self._program(entry), mode=0o755)
        # the last: with it the environment is whole
        _write(self.folder / "pyvenv.cfg", config)

    def variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the variables with which programs find it first: pip, uv and python by their names."""
        programs = str(self.folder / "bin")
        others = [name for name in environment.get("PATH", os.defpath).split(":") if name != programs]
        return {"VIRTUAL_ENV": str(self.folder), "PATH": ":".join([programs, *others])}

    def entering(self) -> str:
        """Write shell lines for a task: `$pai_python` is its Python, or the base's where it is not there."""
        folder, base = shlex.quote(str(self.folder)), shlex.quote(str(self.base))
        return (
            f"pai_python={base}\n"
            f"[ ! -x {folder}/bin/python ] ||"
            f" {{ . {folder}/bin/activate; pai_python=$VIRTUAL_ENV/bin/python; }}\n"
        )

    def _config(self) -> str:
        # a base that is no virtual environment itself has them too
        system = sys.prefix == sys.base_prefix or sys.base_prefix in site.PREFIXES
        changed = max((int(Path(place).stat().st_mtime) for place in _base_packages()), default=0)
        lines = {
            "home": Path(_interpreter()).parent,
            "include-system-site-packages": str(system).lower(),
            "version": "{}.{}.{}".format(*sys.version_info),
            _BASE: self.base,
            _CHANGED: changed,
        }
        return "".join(f"{name} = {value}\n" for name, value in lines.items())

    def _program(self, entry: EntryPoint) -> str:
        name = entry.attr.partition(".")[0]
        python = shlex.quote(str(self.python))
        return _PROGRAM.format(python=python, mark=_MARK, module=entry.module, name=name, call=entry.attr)


def _interpreter() -> str:
    """Return the Python of which the base is an environment itself, or the base."""
    return str(getattr(sys, "_base_executable", "") or sys.executable)


def _base_packages() -> list[str]:
    return [place for place in site.getsitepackages() if Path(place).is_dir()]


def _programs() -> Iterator[EntryPoint]:
    """List the programs of the base's packages that are to see these packages too (`torchrun`, `pip`)."""
    from importlib.metadata import distributions  # most starts need it not

    for distribution in distributions(path=_base_packages()):
        for entry in distribution.entry_points:
            wanted = entry.group == "console_scripts" and not entry.name.startswith(_OF_THE_BASE)
            if wanted and entry.attr and "/" not in entry.name:
                yield entry


def _link(path: Path, target: str) -> None:
    new = path.with_name(f".{path.name}-{os.getpid()}")
    new.unlink(missing_ok=True)
    new.symlink_to(target)
    new.replace(path)


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    new = path.with_name(f".{path.name}-{os.getpid()}")
    new.write_text(text)
    new.chmod(mode)
    new.replace(path)


if __name__ == "__main__":
    # in an image: so that a new home has it, and a task without a home too
    made = OwnPackages.in_home(Path.home())
    made.make()
    print(made.folder)
