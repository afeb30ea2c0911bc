"""The job of a run: a notebook or a program, with parameters."""

from __future__ import annotations

import ast
import json
import keyword
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from pai_scheduler.i18n import Message
from pai_scheduler.own_packages import OwnPackages

from ..messages import msg

# Why a file cannot run as a job.


class RunError(Exception):
    """It cannot run; `message` says why and what to do."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


# The parameters of a notebook: what its cell tagged `parameters` says, and what a person wants instead.

#: The tag that papermill has made known.
TAG = "parameters"


def defaults(notebook: Mapping[str, Any]) -> dict[str, str]:
    """Return the parameters of a notebook with their values as they stand there, in its order.

    Only what can be set to something else: a name, and a number, a text, a list or the like.
    """
    cells = notebook.get("cells")
    for cell in cells if isinstance(cells, list) else ():
        if isinstance(cell, dict) and cell.get("cell_type") == "code" and TAG in _tags(cell):
            return _assigned(_source(cell))
    return {}


def values(typed: Mapping[str, str]) -> dict[str, Any]:
    """Read what a person typed: JSON, or what Python writes alike, anything else is a text. RunError."""
    found = {}
    for name, text in typed.items():
        if not name.isidentifier() or keyword.iskeyword(name):
            raise RunError(
                msg(
                    "A parameter cannot be called “{name}”: letters, digits and _, no digit first.", name=name
                )
            )
        found[name] = _value(text.strip())
    return found


def _value(text: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            value = read(text)
            # what JSON cannot hold (a set, bytes, NaN) stays the text that was typed
            return json.loads(json.dumps(value, allow_nan=False))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
    return text


def _tags(cell: Mapping[str, Any]) -> list[Any]:
    metadata = cell.get("metadata")
    tags = metadata.get("tags") if isinstance(metadata, dict) else None
    return tags if isinstance(tags, list) else []


def _source(cell: Mapping[str, Any]) -> str:
    source = cell.get("source", "")
    return "".join(source) if isinstance(source, list) else str(source)


def _assigned(source: str) -> dict[str, str]:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return {}
    found = {}
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(name)], value=value)
                | ast.AnnAssign(target=ast.Name(name), value=ast.expr() as value)
            ):
                try:
                    ast.literal_eval(value)
                except ValueError:
                    continue
                found[name] = ast.unparse(value)
    return found


# The job that runs one file: a notebook, a Python or a shell script, in the folder of what is beside it.

ROLE = "run"
#: Where results go, in a person's own folder of the storage.
RESULTS = "results/$PAI_JOB_NAME"
#: Characters of a job's name that are not for the file's: `_` and what makes it new.
_LONGEST_NAME = 200
_END_OF_FILE = "end-of-the-runner"

#: Nothing that a person typed stands in these lines, but for what is quoted. The code is in the folder that
#: codeDir names last.
_ENTER = 'cd "${PAI_CODE_DIR##*/}" || exit\n'
_NEEDS = """\
command -v "$pai_python" >/dev/null 2>&1 || {{ echo {sentence} >&2; exit 127; }}
"""
_NOTEBOOK = """\
folder=$(mktemp -d) || exit
cat >"$folder/runner.py" <<'{end}'
{source}
{end}
exec {python} -u "$folder/runner.py" {file} "$pai_python"
"""
_PYTHON = 'exec "$pai_python" -u {file} {arguments}\n'
_SHELL = 'exec "$(command -v bash || echo sh)" {file} {arguments}\n'


class FileKind(StrEnum):
    """Kind of a file, determined by its name."""

    NOTEBOOK = "notebook"
    PYTHON = "python"
    SHELL = "shell"


_KINDS = {".ipynb": FileKind.NOTEBOOK, ".py": FileKind.PYTHON, ".sh": FileKind.SHELL}


@dataclass(frozen=True, slots=True)
class RunDemand:
    """Resources and parameters of a run. Memory in MB; `python`: the one in the image.

    `parameters` are a notebook's, as they were typed, `arguments` a script's, as a shell reads them.
    `results`: a folder of the storage, of one's own where no slash begins it. `own`: the person's packages,
    whose base is `python`.
    """

    image: str
    python: str = "python3"
    gpus: int = 0
    gpu_type: str = ""
    cpus: int = 1
    memory_mb: int = 1024
    virtual_cluster: str = "default"
    parameters: Mapping[str, str] = field(default_factory=dict)
    arguments: str = ""
    results: str = RESULTS
    own: OwnPackages | None = None


def kind_of(name: str) -> FileKind:
    """Return what a file is; RunError where it is nothing that runs."""
    kind = _KINDS.get(Path(name).suffix.lower())
    if kind is None:
        raise RunError(
            msg("“{name}” cannot run as a job: notebooks (.ipynb), .py and .sh can.", name=Path(name).name)
        )
    return kind


def suggested_name(name: str) -> str:
    """Make the name of a job out of a file's."""
    return re.sub(r"[^A-Za-z0-9._~-]+", "-", Path(name).stem).strip("-.")[:_LONGEST_NAME] or "run"


def run_job(
    name: str,
    file: str,
    demand: RunDemand,
    *,
    home: str = "",
    shared_folders: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Write the job JSON of a run; RunError. `file`: its name in the folder that goes along.

    `home`: where the container has the person's persistent home; `shared_folders`: which of the scheduler's.
    """
    kind = kind_of(file)
    envs = dict(env or {})
    if kind is FileKind.NOTEBOOK and demand.parameters:
        envs["PAI_NOTEBOOK_PARAMETERS"] = json.dumps(values(demand.parameters), ensure_ascii=False)
    return {
        "jobName": name,
        "image": demand.image,
        "virtualCluster": demand.virtual_cluster,
        "gpuType": demand.gpu_type if demand.gpus else "",
        "outputDir": _storage_uri(demand.results),
        "retryCount": 0,
        "taskRoles": [
            {
                "name": ROLE,
                "taskNumber": 1,
                "cpuNumber": demand.cpus,
                "memoryMB": demand.memory_mb,
                "shmMB": max(64, demand.memory_mb // 4),
                "gpuNumber": demand.gpus,
                "command": _command(kind, file, demand),
            }
        ],
        "jobEnvs": envs,
        "extras": {
            "run": {"file": file, "kind": kind.value},
            **({"home": home} if home else {}),
            **({"sharedFolders": list(shared_folders)} if shared_folders else {}),
        },
    }


def _command(kind: FileKind, file: str, demand: RunDemand) -> str:
    # a name that begins with a dash is no option
    name, python = shlex.quote(f"./{file}"), shlex.quote(demand.python)
    begin = _ENTER + (demand.own.entering() if demand.own else f"pai_python={python}\n")
    if kind is FileKind.SHELL:
        return begin + _SHELL.format(file=name, arguments=_arguments(demand.arguments))
    sentence = shlex.quote(f"This image has no {demand.python}: choose one with Python.")
    begin += _NEEDS.format(sentence=sentence)
    if kind is FileKind.PYTHON:
        return begin + _PYTHON.format(file=name, arguments=_arguments(demand.arguments))
    return begin + _NOTEBOOK.format(end=_END_OF_FILE, source=_runner(), python=python, file=name)


def _arguments(typed: str) -> str:
    """Quote what was typed, so that the task's shell finds the same words and nothing to carry out."""
    try:
        return shlex.join(shlex.split(typed))
    except ValueError:
        raise RunError(msg("The arguments have a quotation mark without its other half.")) from None


def _storage_uri(folder: str) -> str:
    clean = folder.strip().rstrip("/") or RESULTS
    if any(part == ".." for part in clean.split("/")):
        raise RunError(msg("The folder of the results may have no “..” in it."))
    if clean.startswith("/"):
        return f"$PAI_DEFAULT_FS_URI{clean}"
    return f"$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/{clean}"


@cache
def _runner() -> str:
    return Path(__file__).with_name("runner.py").read_text(encoding="utf-8").rstrip("\n")
