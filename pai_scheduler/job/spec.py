"""A job as the scheduler understands it: the validated job JSON with defaults filled in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import msgspec

from pai_scheduler.i18n import Message, msg

from .dependencies import AfterRequest, after_of
from .json_path import Path, quoted

# What the folders and volumes of users and groups are called.

#: For all to read; members of groups; results of jobs; what the service puts there for a user.
PUBLIC, SHARED, OUTPUT, CONTAINER = "Public", "Shared", "Output", "Container"
_RESERVED = (PUBLIC, SHARED, OUTPUT, CONTAINER)
#: Characters of a name that a volume's name shows, for people who look at a list of them.
_SHOWN = 40
#: Hexadecimal digits that tell names apart: too many for somebody to choose a name that has another's.
_DIGITS = 20
#: Bytes of a file's name, which file systems limit to 255.
_LONGEST_NAME = 200


def folder_name(name: str) -> str:
    """Name the folder of a user or group: the name, where a folder may be called so and none of ours is."""
    safe = name.replace("%", "%25").replace("/", "%2F")
    if safe.startswith(".") or safe in _RESERVED:
        safe = f"%{ord(safe[0]):02X}{safe[1:]}"
    return safe


def uri_name(user: str) -> str:
    """Return what a user's folders are called in a URI: nearly always the user's name."""
    return folder_name(user).replace("%", "%25")


def host_folder_name(name: str) -> str:
    """Name the folder of a user or group on a machine: as in the storage, where a file may be called so.

    No two names have the same one, and none leads anywhere else. It has no colon, so that a list of paths may
    have one between them.
    """
    safe = re.sub(r"[\x00-\x1f\x7f:]", lambda found: f"%{ord(found[0]):02X}", folder_name(name))
    encoded = safe.encode("utf-8", "surrogatepass")
    if len(encoded) <= _LONGEST_NAME and not _has_surrogates(safe):
        return safe
    digest = hashlib.sha256(encoded).hexdigest()
    shown = encoded[: _LONGEST_NAME - len(digest) - 2].decode("utf-8", "ignore")
    # (a name that is written in full has no such sign, but for that of an escape)
    return f"{shown}%-{digest}"


def volume_part(name: str) -> str:
    """Return what stands for a user or group in the name of a volume; no two names have the same."""
    shown = re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:_SHOWN]
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{shown}-{digest}"


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)


# What `extras.notify` asks for: who outside is told of a job's end; and what is wrong with it.

#: What a job is told of: its end, however it comes out, or only that it has failed.
END, FAILURE = "end", "failure"
#: Printable, without what one program may read in another way than the next.
_URL = re.compile(r"[!-\[\]-~]+")
_ADDRESS = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")


@dataclass(frozen=True, slots=True)
class NotifyRequest:
    """Requested notifications. `webhook` empty: none; `mail`: True (the user's own), an address, or False."""

    on: tuple[str, ...]
    webhook: str
    mail: bool | str


def notify_of(extras: Mapping[str, Any]) -> NotifyRequest | None:
    """Read it; None where nothing is asked for.

    A job that is older than this field may have anything under its name: that asks for nothing.
    """
    given = extras.get("notify")
    if given is None or any(notify_errors(extras)):
        return None
    on, webhook, mail = given.get("on", [END]), given.get("webhook", ""), given.get("mail", False)
    if not (isinstance(on, list) and isinstance(webhook, str) and isinstance(mail, bool | str)):
        return None
    return NotifyRequest(tuple(str(one) for one in on), webhook, mail)


def notify_errors(extras: object) -> Iterator[tuple[Path, Message]]:
    """Find what a schema cannot say; what the schema refuses is left out of account."""
    given = extras.get("notify") if isinstance(extras, dict) else None
    if given is None:
        return
    path: Path = ("extras", "notify")
    if not isinstance(given, dict):
        yield path, msg("{field} must be an object.", field="extras.notify")
        return
    webhook, mail = given.get("webhook"), given.get("mail", False)
    if webhook is None and mail is False:
        yield path, msg("Say where the end of the job is told: a webhook, mail, or both.")
    if isinstance(webhook, str) and webhook and not _is_url(webhook):
        yield (
            (*path, "webhook"),
            msg(
                "{url} is no address for a webhook: begin with https:// or http:// and a host; no user, "
                "no password and no spaces.",
                url=quoted(webhook),
            ),
        )
    if isinstance(mail, str) and not is_address(mail):
        yield (
            (*path, "mail"),
            msg(
                "{address} is no mail address. Say true for your own, or an address as ada@lab.example.",
                address=quoted(mail),
            ),
        )


def is_address(text: str) -> bool:
    """Return whether this is a plain mail address, which needs no quoting anywhere."""
    return len(text) <= 254 and _ADDRESS.fullmatch(text) is not None


def _is_url(text: str) -> bool:
    if not _URL.fullmatch(text):
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False


# A job as the scheduler understands it: the validated job JSON with defaults filled in.
#
# Field meanings: job-contract.md, section 1 (OpenPAI v0.14's job JSON and SCM's additions).

Scalar = str | int | float | bool | None

#: Every role has these ports, listed in its `portList` or not.
STANDARD_PORTS = ("http", "ssh")
#: `extras.priority` of a job that does not say.
DEFAULT_PRIORITY = 50


class PortRequest(msgspec.Struct, frozen=True, gc=False):
    """A labelled range of `count` ports from `begin_at` on; `begin_at` 0: chosen by the scheduler."""

    label: str
    begin_at: int
    count: int


@dataclass(frozen=True, slots=True)
class MountRequest:
    """A folder of the storage, as a URI, that tasks find at `target`, in the working folder or absolute."""

    source: str
    target: str


class TaskRole(msgspec.Struct, frozen=True, gc=False):
    """One kind of task, and how many of it run. Memory and shared memory in MB, storage in GB."""

    name: str
    command: str
    task_number: int = 1
    cpu_number: int = 1
    memory_mb: int = 100
    shm_mb: int = 64
    gpu_number: int = 0
    storage_gb: int | None = None
    ports: tuple[PortRequest, ...] = ()
    #: None: failed tasks never fail the job.
    min_failed_task_count: int | None = 1
    #: None: the attempt succeeds when all tasks have completed.
    min_succeeded_task_count: int | None = None

    @property
    def all_ports(self) -> tuple[PortRequest, ...]:
        """Return the listed ports and those every role has (`http`, `ssh`)."""
        listed = {port.label for port in self.ports}
        return self.ports + tuple(PortRequest(label, 0, 1) for label in STANDARD_PORTS if label not in listed)


class JobSpec(msgspec.Struct, frozen=True, gc=False):
    """A whole job. Storage URIs as written: variables in them are substituted per task.

    Of these there may be a million: they are made in C, and hold nothing that leads back to them, so that
    Python need not look for cycles among them.
    """

    name: str
    image: str
    task_roles: tuple[TaskRole, ...]
    auth_file: str = ""
    data_dir: str = ""
    output_dir: str = ""
    code_dir: str = ""
    virtual_cluster: str = "default"
    #: None: any type will do, but one task's GPUs are always of one type.
    gpu_type: str | None = None
    retry_count: int = 0
    envs: Mapping[str, Scalar] = {}
    extras: Mapping[str, Any] = {}

    @property
    def is_debug(self) -> bool:
        """Return whether a failed task keeps its container (`jobEnvs.isDebug`)."""
        return self.envs.get("isDebug") in (True, "true")

    @property
    def priority(self) -> int:
        """Return `extras.priority`: 0–100, higher comes first within its virtual cluster."""
        return int(self.extras.get("priority", DEFAULT_PRIORITY))

    @property
    def max_run_seconds(self) -> int | None:
        """Return `extras.maxRunSeconds`: how long an attempt may run; None: as the virtual cluster has it."""
        return self.extras.get("maxRunSeconds")

    @property
    def termination_grace_seconds(self) -> int | None:
        """Return `extras.terminationGraceSeconds`: how long a task that is being stopped may run on.

        None: as the cluster has it.
        """
        return self.extras.get("terminationGraceSeconds")

    @property
    def spread(self) -> bool:
        """Return whether tasks of a role are wanted on different nodes (`extras.placement`), not near."""
        return self.extras.get("placement") == "spread"

    @property
    def mounts(self) -> tuple[MountRequest, ...]:
        """Return `extras.mounts`: folders of the storage that tasks find as folders."""
        return tuple(
            MountRequest(mount["source"], mount["target"]) for mount in self.extras.get("mounts", ())
        )

    @property
    def home(self) -> str:
        """Return `extras.home`: where tasks find their user's home that stays; empty: nowhere."""
        return str(self.extras.get("home", ""))

    @property
    def shared_folders(self) -> tuple[str, ...]:
        """Return `extras.sharedFolders`: names of folders that an administrator shares; `*`: all."""
        return tuple(self.extras.get("sharedFolders", ()))

    @property
    def after(self) -> tuple[AfterRequest, ...]:
        """Return `extras.after`: the jobs that this one waits for, by their names; read at its submission."""
        return after_of(self.extras)

    @property
    def notify(self) -> NotifyRequest | None:
        """Return `extras.notify`: who outside is told of the job's end; None: nobody."""
        return notify_of(self.extras)

    @property
    def preemptible(self) -> bool:
        """Return whether the job may be stopped for others, and so may borrow (`extras.preemptible`)."""
        return bool(self.extras.get("preemptible", True))

    @property
    def may_be_interrupted(self) -> bool:
        """Return whether its owner said that it may be stopped for others of its own virtual cluster too."""
        return self.extras.get("preemptible") is True

    @property
    def total_tasks(self) -> int:
        """Return the number of tasks in all roles."""
        return sum(role.task_number for role in self.task_roles)

    @property
    def total_gpus(self) -> int:
        """Return the number of GPUs that all tasks take together."""
        return sum(role.task_number * role.gpu_number for role in self.task_roles)

    def role(self, name: str) -> TaskRole:
        """Find a role by its name; KeyError where there is none."""
        for role in self.task_roles:
            if role.name == name:
                return role
        raise KeyError(name)


def renamed(spec: JobSpec, name: str) -> JobSpec:
    """Return the same job under another name."""
    return msgspec.structs.replace(spec, name=name)
