"""Runs files of the file browser as jobs, in the user's name: what would come of it, and the job itself."""

from __future__ import annotations

import ast
import asyncio
import json
import keyword
import os
import re
import shlex
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Literal

import msgspec

from pai_labextension.kernels.offers import gpu_supply
from pai_labextension.models import CodeFile, RunPlan, SubmitLine
from pai_scheduler.client.rest import ApiError, Client, start_in_words
from pai_scheduler.client.storage.client import FilesClient
from pai_scheduler.client.storage.code import CodeSettings, Deliver, generate_name, plan, read_settings
from pai_scheduler.i18n import Message
from pai_scheduler.own_packages import OwnPackages
from pai_scheduler.rest.cluster import NodeInfo
from pai_scheduler.rest.models import Validation

from ..images import EXAMPLE, LOCAL, ImageHelp, image_help
from ..kernels.service import OwnServer
from ..messages import msg
from ..own_python import own_packages
from .code import EXPECTED, CodeRefusedError, find_file, sentence, submit_lines

# The job of a run: a notebook or a program, with parameters.


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


#: What a run asks for where nothing else is said: so little that a small machine has it beside a server.
_CPUS, _MEMORY_MB = 2, 4096
#: Where the files of schedules are, a folder each, in the storage.
SNAPSHOTS = "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/schedules"
#: Bytes of the longest notebook whose parameters are looked for.
_LONGEST = 64 * 2**20


class RunSchedule(msgspec.Struct, frozen=True, rename="camel"):
    """Recurring schedule of a file: a cron expression, in a time zone."""

    cron: str
    time_zone: str
    overlap: Literal["skip", "allow"] = "skip"


class RunRequest(msgspec.Struct, frozen=True, rename="camel"):
    """Run request, as the front end sends it; None: the default."""

    path: str
    name: str | None = None
    image: str | None = None
    gpus: int = 0
    gpu_type: str = ""
    cpus: int | None = None
    memory_mb: int | None = msgspec.field(default=None, name="memoryMB")
    virtual_cluster: str | None = None
    parameters: dict[str, str] = msgspec.field(default_factory=dict)
    arguments: str = ""
    results: str | None = None
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    #: None: once, now
    schedule: RunSchedule | None = None


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """Known state of the cluster, of this server and of its user."""

    own: OwnServer
    images: ImageHelp
    virtual_clusters: tuple[str, ...]
    nodes: tuple[NodeInfo, ...]


class FileRunner:
    """Runs files that are below `root`: what the file browser shows."""

    def __init__(self, url: str, token: str, root: Path) -> None:
        self._url, self._token, self._root = url, token, root

    async def plan(self, request: RunRequest, locale: str) -> RunPlan:
        """Return what would come of it, and what there is to choose; nothing is sent. CodeRefusedError."""
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(Client(self._url, self._token, locale=locale))
            try:
                file, settings = await self._chosen(request, locale)
                kind = kind_of(file.name)
                around = await _look_around(client)
                demand = _demand(request, around)
                name = request.name or suggested_name(file.name)
                schedule = request.schedule
                times = await client.schedule_times(schedule.cron, schedule.time_zone) if schedule else []
                fits, sentences = await _forecast(client, _job(name, file, demand, around.own), locale)
                files, problem = await _files(file.parent, settings, locale)
                found = await asyncio.to_thread(_parameters, file) if kind is FileKind.NOTEBOOK else {}
            except (RunError, *EXPECTED) as error:
                raise CodeRefusedError(_sentence(error, locale)) from error
        return {
            "kind": kind.value,
            "name": name,
            "image": demand.image,
            "images": [*around.images.used],
            "imageNeeded": around.images.needed,
            "virtualCluster": demand.virtual_cluster,
            "virtualClusters": list(around.virtual_clusters),
            "gpuTypes": {name: kind.most for name, kind in gpu_supply(around.nodes).items()},
            "cpus": demand.cpus,
            "memoryMB": demand.memory_mb,
            "parameters": found,
            "results": demand.results,
            "include": list(settings.include),
            "exclude": list(settings.exclude),
            "files": files,
            "fits": "never" if problem else fits,
            "sentences": [*([problem] if problem else []), *sentences],
            "times": times,
        }

    async def submit(self, request: RunRequest, locale: str) -> AsyncGenerator[SubmitLine, None]:
        """Upload what goes along and submit; tell how far it is, then the job. CodeRefusedError.

        With a schedule nothing is submitted now: each run finds what was uploaded here.
        """
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(Client(self._url, self._token, locale=locale))
            files = await stack.enter_async_context(FilesClient(self._url, self._token, locale=locale))
            try:
                file, settings = await self._chosen(request, locale)
                around = await _look_around(client)
                wanted = request.name or suggested_name(file.name)
                name = generate_name(wanted)
                job = _job(name, file, _demand(request, around), around.own)
                deliver = None
                if request.schedule is not None:
                    user = (await client.whoami())["username"]
                    await _refuse_taken(client, user, wanted)
                    # each run has a name of its own, and all find the files in one folder
                    job["codeDir"] = f"{SNAPSHOTS}/{name}"
                    deliver = _scheduling(client, user, wanted, request.schedule)
            except (RunError, *EXPECTED) as error:
                raise CodeRefusedError(_sentence(error, locale)) from error
            sending = submit_lines(client, files, job, file.parent, settings, locale, deliver)
            async with aclosing(sending) as lines:
                async for line in lines:
                    yield line

    async def _chosen(self, request: RunRequest, locale: str) -> tuple[Path, CodeSettings]:
        file = await asyncio.to_thread(find_file, self._root, request.path, locale)
        settings = await asyncio.to_thread(read_settings, file.parent)
        include = settings.include if request.include is None else request.include
        return file, CodeSettings(
            enabled=True,
            # the file itself goes along in any case; what it is called is no pattern
            include=tuple(dict.fromkeys([*include, _escaped(file.name)])),
            exclude=settings.exclude if request.exclude is None else request.exclude,
        )


def _scheduling(client: Client, user: str, name: str, schedule: RunSchedule) -> Deliver:
    """Return what makes a schedule of a job."""

    async def deliver(job: Mapping[str, Any]) -> str:
        made = await client.set_schedule(
            user, name, job, cron=schedule.cron, zone=schedule.time_zone, overlap=schedule.overlap
        )
        return made["name"]

    return deliver


async def _refuse_taken(client: Client, user: str, name: str) -> None:
    try:
        await client.schedule(user, name)
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return
        raise
    raise RunError(msg("There is a schedule named {name} already. Choose another name.", name=name))


async def _look_around(client: Client) -> _Surroundings:
    name = os.environ.get("PAI_JOB_NAME", "")
    user = await client.whoami()
    own = OwnServer()
    if name:
        jobs = {job["name"] for job in await client.jobs(user["username"], limit=200)}
        own = OwnServer.read(await client.config(user["username"], name)) if name in jobs else own
    images, nodes = await asyncio.gather(image_help(client), client.nodes())
    return _Surroundings(own, images, tuple(user["virtualCluster"]), tuple(nodes))


def _demand(request: RunRequest, around: _Surroundings) -> RunDemand:
    own = around.own
    image = request.image or own.image or next(iter(around.images.used), EXAMPLE)
    if not around.images.needed:
        image = request.image or own.image or LOCAL
    usual = own.virtual_cluster if own.virtual_cluster in around.virtual_clusters else "default"
    same = image == own.image or not around.images.needed
    return RunDemand(
        image,
        sys.executable if same else "python3",
        request.gpus,
        request.gpu_type,
        request.cpus or _CPUS,
        request.memory_mb or _MEMORY_MB,
        request.virtual_cluster or usual,
        request.parameters,
        request.arguments,
        request.results or RESULTS,
        own_packages() if same else None,
    )


def _job(name: str, file: Path, demand: RunDemand, own: OwnServer) -> dict[str, Any]:
    env = {key: value for key, value in own.env.items() if key == "HOME"}
    return run_job(
        name, file.name, demand, home=own.home, shared_folders=own.shared_folders, env=env if own.home else {}
    )


async def _forecast(client: Client, job: Mapping[str, Any], locale: str) -> tuple[Any, list[str]]:
    answer: Validation = await client.validate(job)
    if answer["errors"]:
        return "never", [error["message"] for error in answer["errors"]]
    if answer["fits"] == "now":
        return "now", [msg("It starts at once.").in_locale(locale)]
    words = [message.in_locale(locale) for message in start_in_words(answer)]
    return answer["fits"], [answer["reason"], *words]


async def _files(folder: Path, settings: CodeSettings, locale: str) -> tuple[list[CodeFile], str]:
    """List what would go along, or say why it cannot."""
    try:
        found = await asyncio.to_thread(plan, folder, settings)
    except EXPECTED as error:
        return [], sentence(error, locale)
    return [{"name": file.name, "length": file.length} for file in found.files], ""


def _parameters(file: Path) -> dict[str, str]:
    try:
        with file.open("rb") as stream:
            notebook = json.loads(stream.read(_LONGEST))
    except (OSError, ValueError):
        return {}
    return defaults(notebook) if isinstance(notebook, dict) else {}


def _escaped(name: str) -> str:
    """Write a file's name as a pattern that means this file alone."""
    return "".join(f"\\{letter}" if letter in "*?[]{}!\\" else letter for letter in name)


def _sentence(error: Exception, locale: str) -> str:
    return error.message.in_locale(locale) if isinstance(error, RunError) else sentence(error, locale)
