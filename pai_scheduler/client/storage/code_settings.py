"""Settings of the code that goes along with a job: as the documents' editor extension has them, and globs.

Settings are `pai.job.upload.enabled`, `.include`, `.exclude` and `pai.job.generateJobName.enabled`, in
`.pai/settings.json`, or where that does not have them in `.vscode/settings.json`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from wcmatch import glob

from pai_scheduler.i18n import Message, counted, msg
from pai_scheduler.job.json_text import JsonTextError, loads_jsonc

from .transfer import LeftOut
from .upload import LocalFile, look_through

#: MB (10^6 bytes) of code that a job may have; more belongs into its data.
LARGEST_MB = 200
_FILES = (".pai/settings.json", ".vscode/settings.json")
_ENABLED, _INCLUDE, _EXCLUDE, _GENERATE = (
    "pai.job.upload.enabled",
    "pai.job.upload.include",
    "pai.job.upload.exclude",
    "pai.job.generateJobName.enabled",
)
_KEYS = (_ENABLED, _INCLUDE, _EXCLUDE, _GENERATE)
#: What begins so is meant for us; an editor's file holds other settings too.
_OURS = ("pai.job.upload.", "pai.job.generateJobName.")
#: What is nobody's code, unless a pattern says its name.
_NEVER = frozenset({".git", ".pai", ".ipynb_checkpoints", "__pycache__", "node_modules", "site-packages"})
#: One of these is in a folder into which packages are installed: a virtual environment, one of conda's.
_ENVIRONMENTS = ("pyvenv.cfg", "conda-meta")
#: What goes along from a home folder, which holds more than one project.
_FROM_HOME = ("*.py", "*.sh")
_SHOWN = 5
_INCLUDED = glob.GLOBSTAR | glob.BRACE
_EXCLUDED = _INCLUDED | glob.DOTGLOB


class CodeError(Exception):
    """The code of a job cannot go along; `message` says why and what to do."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


@dataclass(frozen=True, slots=True)
class CodeSettings:
    """Code upload settings: on or off, and globs below the folder, `**` being folders at any depth.

    `*` and `**` leave out names that begin with a dot, in `include`. A pattern that names a folder means all
    that is in it.
    """

    enabled: bool = False
    include: Sequence[str] = ("**/*.py", "**/*.sh")
    exclude: Sequence[str] = ()
    generate_name: bool = False


@dataclass(frozen=True, slots=True)
class CodeSelection:
    """The files that go along, and what was wanted but cannot."""

    files: Sequence[LocalFile]
    left_out: Sequence[LeftOut]

    @property
    def length(self) -> int:
        """Add up the bytes."""
        return sum(file.length for file in self.files)


def read_settings(folder: Path) -> CodeSettings:
    """Read the settings of a folder, defaults where it has none; CodeError where they are wrong.

    By default scripts of all folders below it go along; from the home folder only those that are in it.
    """
    found: dict[str, Any] = {}
    for name in reversed(_FILES):
        found.update(_read(folder / name))
    default = CodeSettings(include=_FROM_HOME) if _is_home(folder) else CodeSettings()
    return CodeSettings(
        enabled=found.get(_ENABLED, default.enabled),
        include=found.get(_INCLUDE, default.include),
        exclude=found.get(_EXCLUDE, default.exclude),
        generate_name=found.get(_GENERATE, default.generate_name),
    )


def plan(folder: Path, settings: CodeSettings) -> CodeSelection:
    """Find the files that the settings choose; CodeError where there are none, or more than 200 MB."""
    include = _normal(settings.include)
    included = glob.compile(include, flags=_INCLUDED)
    excluded = glob.compile(_normal(settings.exclude), flags=_EXCLUDED)
    hidden = any(part.startswith(".") for pattern in include for part in pattern.split("/"))
    named = {part for pattern in include for part in pattern.split("/")}

    def enters(name: str) -> bool:
        last = name.rpartition("/")[2]
        if last in _NEVER - named or (last.startswith(".") and not hidden) or excluded.match(name):
            return False
        return last in named or not any((folder / name / mark).exists() for mark in _ENVIRONMENTS)

    tree = look_through(folder, enters)

    files = [file for file in tree.files if included.match(file.name) and not excluded.match(file.name)]
    failed = [item for item in tree.left_out if item.failed]
    if not files and failed:
        raise CodeError(msg("{reason} Nothing was submitted.", reason=failed[0].reason))
    if not files:
        raise CodeError(
            msg(
                "No file in {folder} is chosen by {patterns}: correct pai.job.upload.include, or submit "
                "without code.",
                folder=str(folder),
                patterns=", ".join(settings.include) or "[]",
            )
        )
    code = CodeSelection(files, failed)
    _check_length(code)
    return code


def _is_home(folder: Path) -> bool:
    try:
        return folder.samefile(Path.home())
    except (OSError, RuntimeError):
        return False


def _check_length(code: CodeSelection) -> None:
    if code.length <= LARGEST_MB * 10**6:
        return
    largest = sorted(code.files, key=lambda file: -file.length)[:_SHOWN]
    raise CodeError(
        counted(
            "The code is {length} MB in {count} file, of {limit} MB at most. The largest: {largest}. Leave "
            "it out with pai.job.upload.exclude, and put data into the storage (pai fs put).",
            "The code is {length} MB in {count} files, of {limit} MB at most. The largest: {largest}. Leave "
            "them out with pai.job.upload.exclude, and put data into the storage (pai fs put).",
            length=-(-code.length // 10**6),
            count=len(code.files),
            limit=LARGEST_MB,
            largest=", ".join(f"{file.name} ({-(-file.length // 10**6)} MB)" for file in largest),
        )
    )


def _normal(patterns: Iterable[str]) -> list[str]:
    """Write patterns as the library wants them; one that names a folder is all that is in it."""
    normal = []
    for pattern in patterns:
        plain = "/".join(part for part in pattern.split("/") if part not in ("", "."))
        normal += [plain, f"{plain}/**"]
    return normal


def _read(file: Path) -> Mapping[str, Any]:
    try:
        settings = loads_jsonc(file.read_bytes().decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise CodeError(
            msg("{file} cannot be read: {reason}.", file=str(file), reason=error.strerror)
        ) from None
    except UnicodeDecodeError as error:
        raise CodeError(
            msg("{file} is not UTF-8 text (byte {position}).", file=str(file), position=error.start)
        ) from None
    except JsonTextError as error:
        raise CodeError(
            msg(
                "{file}, line {line}, column {column}: {reason}",
                file=str(file),
                line=error.line,
                column=error.column,
                reason=error.message,
            )
        ) from None
    if not isinstance(settings, dict):
        raise CodeError(msg("{file} holds no JSON object.", file=str(file)))
    for key in settings:
        if key.startswith(_OURS) and key not in _KEYS:
            nearest = get_close_matches(key, _KEYS, n=1, cutoff=0)[0]
            raise CodeError(
                msg(
                    "{file}: there is no setting {key}; did you mean {nearest}?",
                    file=str(file),
                    key=key,
                    nearest=nearest,
                )
            )
    for key in (_ENABLED, _GENERATE):
        if not isinstance(settings.get(key, False), bool):
            raise CodeError(msg("{file}: {key} must be true or false.", file=str(file), key=key))
    for key in (_INCLUDE, _EXCLUDE):
        value = settings.get(key, [])
        if not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            raise CodeError(
                msg('{file}: {key} must be a list of patterns, as ["**/*.py"].', file=str(file), key=key)
            )
    return {key: settings[key] for key in _KEYS if key in settings}
