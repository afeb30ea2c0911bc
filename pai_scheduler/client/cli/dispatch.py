"""Which function is behind each command of `pai`; its module is loaded when the command is given.

SSH alone takes a quarter of a second to load, which a list of jobs need not wait for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import cast

Command = Callable[..., Awaitable[int]]

#: Command → module of this folder, and function in it.
COMMANDS: dict[str, str] = {
    "submit": "submit.submit",
    "jobs": "commands.jobs",
    "show": "commands.show",
    "logs": "commands.logs",
    "metrics": "commands.metrics",
    "stop": "commands.stop",
    "delete": "commands.delete",
    "nodes": "commands.nodes",
    "nodes cordon": "nodes.cordon",
    "nodes uncordon": "nodes.uncordon",
    "maintenance list": "maintenance.list_",
    "maintenance set": "maintenance.set_",
    "maintenance delete": "maintenance.delete",
    "queue": "queue.queue",
    "move": "queue.move",
    "priority": "queue.priority",
    "vcs": "commands.vcs",
    "vc list": "commands.vcs",
    "vc set": "virtual_clusters.vc_set",
    "vc delete": "virtual_clusters.vc_delete",
    "vc stop": "virtual_clusters.vc_stop",
    "vc start": "virtual_clusters.vc_start",
    "validate": "commands.validate",
    "schedule list": "schedules.list_",
    "schedule create": "schedules.create",
    "schedule show": "schedules.show",
    "schedule pause": "schedules.pause",
    "schedule resume": "schedules.resume",
    "schedule run": "schedules.run",
    "schedule delete": "schedules.delete",
    "ssh": "ssh.ssh",
    "exec": "ssh.exec_",
    "cp": "ssh_copy.cp",
    "port-forward": "ssh_forward.port_forward",
    "ssh-config": "ssh_config.ssh_config",
    "ssh-info": "ssh_keys.ssh_info",
    "ssh-key": "ssh_keys.ssh_key",
    "keys list": "ssh_keys.keys_list",
    "keys add": "ssh_keys.keys_add",
    "keys remove": "ssh_keys.keys_remove",
    "fs ls": "fs.fs_ls",
    "fs put": "transfers.fs_put",
    "fs get": "transfers.fs_get",
    "fs rm": "fs.fs_rm",
    "fs mkdir": "fs.fs_mkdir",
    "fs du": "fs.fs_du",
    "fs cat": "fs.fs_cat",
    "fs mv": "fs.fs_mv",
    "fs cp": "fs.fs_cp",
}


def load_command(name: str) -> Command:
    """Return the function behind a command."""
    module, _, function = COMMANDS[name].partition(".")
    return cast(Command, getattr(import_module(f".{module}", __package__), function))
