"""The job a notebook server is: one role, one task, a command that runs a single-user server; its home."""

from __future__ import annotations

import hashlib
import re
import secrets
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .options import Options

ROLE = "notebook"

#: The port is known in the task only. A server begins in its person's home folder, if there is one. Nothing
#: that a person typed stands in this line: the server's own prefix and everything else about it come in the
#: environment.
_COMMAND = (
    "cd 2>/dev/null\n"
    "{before}"
    'export JUPYTERHUB_SERVICE_URL="http://{address}:$PAI_CONTAINER_HOST_http_PORT_LIST$JUPYTERHUB_SERVICE_PREFIX"\n'
    "exec {server}"
)
#: What runs where nothing else is chosen, and what does in an image that lacks it.
SINGLEUSER = "pai-singleuser"
_PROGRAM = f'"$(command -v {SINGLEUSER} || echo jupyterhub-singleuser)"'
#: Lets in who has filled the home, to make room: the few small files without which Jupyter does not start are
#: elsewhere then.
_ROOM = """\
PAI_HOME_IS_FULL=
if ! {{ printf '%{bytes}s' '' > ".pai-room-$$"; }} 2>/dev/null; then
  PAI_HOME_IS_FULL=yes
  export JUPYTER_RUNTIME_DIR="$(mktemp -d)"
  echo 'The home is full: nothing can be saved in it until files are removed.' >&2
fi
rm -f ".pai-room-$$"
"""
#: Bytes without which a home counts as full.
_LEAST_ROOM = 262_144
#: Gives a home that was made of another image what it lacks of this one's tutorials. Nothing that is there is
#: touched, and a server starts without them too.
_TUTORIALS = """\
[ -n "$PAI_HOME_IS_FULL" ] || [ ! -d {folder} ] || {{ mkdir -p tutorials && cp -Rn {folder}/. tutorials/; }}
"""
#: Shows shared folders among a person's own files, as a server shows what is in the home: `shared/data/sets`
#: is a link to `/data/sets`. A link to what is not open to its person any more goes.
_LINKS = """\
[ -z "$PAI_SHARED_FOLDERS" ] && [ ! -d shared ] || (
  find shared -type l 2>/dev/null | while read -r link; do [ -e "$link" ] || rm -f "$link"; done
  IFS=:
  set -f
  for folder in $PAI_SHARED_FOLDERS; do
    link=shared$folder
    [ -d "$folder" ] && [ ! -e "$link" ] && mkdir -p "${link%/*}" && ln -s "$folder" "$link"
  done
)
"""


def new_job_name(server_name: str) -> str:
    """Make a job name for a start: `notebook_<8 hex>`, with a named server's name in it.

    The Hub's server names are job-name characters already; whatever else a name may hold becomes `-`.
    """
    part = "." + re.sub(r"[^A-Za-z0-9~-]", "-", server_name)[:64] if server_name else ""
    return f"notebook{part}_{secrets.token_hex(4)}"


def server_job(
    name: str,
    server_name: str,
    options: Options,
    env: Mapping[str, str],
    *,
    command: Sequence[str],
    address: str,
    home: str = "",
    tutorials: str = "",
    shared_folders: Sequence[str] = (),
) -> dict[str, Any]:
    """Write the job JSON of a server that listens on `address` of its task, on the task's own http port.

    `home`: where its container has the person's persistent home, with what it lacks of the image's folder
    `tutorials`, and links to the `shared_folders`, which are those of the scheduler, by name.
    """
    before = _ROOM.format(bytes=_LEAST_ROOM) if home else ""
    before += _TUTORIALS.format(folder=shlex.quote(tutorials)) if home and tutorials else ""
    before += _LINKS if home and shared_folders else ""
    return {
        "jobName": name,
        "image": options.image,
        "virtualCluster": options.virtual_cluster,
        "gpuType": options.gpu_type,
        "retryCount": 0,
        "taskRoles": [
            {
                "name": ROLE,
                "taskNumber": 1,
                "cpuNumber": options.cpus,
                "memoryMB": options.memory_mb,
                "shmMB": min(options.shm_mb, options.memory_mb),
                "gpuNumber": options.gpus,
                "command": _COMMAND.format(address=address, before=before, server=_server(command)),
            }
        ],
        "jobEnvs": dict(env),
        # a person's session never borrows from another virtual cluster, so it is never taken away
        "extras": {
            "session": {"server": server_name},
            "preemptible": False,
            **({"home": home} if home else {}),
            **({"sharedFolders": list(shared_folders)} if shared_folders else {}),
            **({"maxRunSeconds": options.run_minutes * 60} if options.run_minutes else {}),
        },
    }


def _server(command: Sequence[str]) -> str:
    program, *arguments = command
    run = _PROGRAM if program == SINGLEUSER else shlex.quote(program)
    return " ".join([run, *map(shlex.quote, arguments)])


# A user's persistent folder on the machine of the process engine, with the tutorials in it.


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
