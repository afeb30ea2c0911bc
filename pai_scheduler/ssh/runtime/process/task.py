"""The task that a server is for: what its folder says of it, and which processes are its own."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from pai_scheduler.engine.process import procfs
from pai_scheduler.engine.process.task_cgroup import TaskGroup
from pai_scheduler.engine.process.task_folder import COOKIE, TaskFolder
from pai_scheduler.ssh.keys.task_files import AUTHORIZED_KEYS, HOST_KEY


class LocalTask:
    """A launched task. OSError, ValueError where its folder cannot be read."""

    def __init__(self, path: Path) -> None:
        folder = TaskFolder(path)
        spec = folder.launch_spec()
        port = spec.get("ssh_port")
        if not port:
            raise ValueError("the task has no port for an SSH server")
        self.port = port
        #: those that it was given
        self.ports = frozenset(spec.get("ports", ()))
        #: the whole environment of its command
        self.env = dict(spec["env"])
        #: where sessions begin: the job may name another folder than the task's own, such as a home
        self.work = folder.work if (own := _folder(self.env.get("PAI_WORK_DIR"))) is None else own
        self.group = TaskGroup(spec["groups"])
        self.host_key = (folder.private / HOST_KEY).read_bytes()
        self.authorized_keys = (folder.private / AUTHORIZED_KEYS).read_text()
        self._folder = folder

    def shell(self) -> str:
        """Return the shell that a person of this task gets: $SHELL, else bash or sh."""
        own = self.env.get("SHELL", "")
        path = self.env.get("PATH", os.defpath)
        # an account without log-in has a shell that only says so
        usable = own.startswith("/") and os.access(own, os.X_OK) and not own.endswith(("/nologin", "/false"))
        return (
            own if usable else shutil.which("bash", path=path) or shutil.which("sh", path=path) or "/bin/sh"
        )

    def processes(self) -> set[int]:
        """List the task's processes: in its cgroups, with its mark, or below its supervisor."""
        _, record = self._folder.read()
        found = self.group.processes()
        if mark := self.env.get(COOKIE):
            found.update(procfs.with_variable(COOKIE, mark))
        # not there while it is being written
        if supervisor := record.get("supervisor"):
            found.update(process.pid for process in procfs.tree(supervisor))
        return found


def _folder(path: str | None) -> Path | None:
    """Return a folder that there is, by its whole path."""
    try:
        return Path(path) if path and path.startswith("/") and Path(path).is_dir() else None
    except OSError:  # it may not be looked at
        return None
