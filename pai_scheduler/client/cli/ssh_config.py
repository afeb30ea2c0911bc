"""`pai ssh-config`, `ssh-info`, `ssh-key` and `keys`: for other programs that log in."""

from __future__ import annotations

import asyncio
import os
import pwd
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from pai_scheduler.client.rest import ApiError, Client
from pai_scheduler.client.ssh.connection import RemoteError, find_gateway, gateway_of
from pai_scheduler.client.ssh.openssh_config import (
    Host,
    UnwritableNameError,
    config,
    hosts,
    known_hosts,
    quoted,
    word_of,
)
from pai_scheduler.client.storage.transfer import LocalFileError, side_by_side
from pai_scheduler.i18n import msg
from pai_scheduler.rest.models import SshContainer, SshInfo
from pai_scheduler.ssh.login import LoginName

from .session import OK, CliSession, moment, pairs, printable, table

# The files in a person's ~/.ssh that are ours: ~/.ssh/pai, and one line in ~/.ssh/config that reads it.

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


# `pai ssh-config`: lets every program that reads ~/.ssh/config find the running tasks.


@dataclass(frozen=True, slots=True)
class _Running:
    """Running tasks of one user that can be logged into, and the key of each of their jobs."""

    tasks: Sequence[LoginName]
    keys: Mapping[str, str]


async def ssh_config(session: CliSession, *, write: bool, remove: bool) -> int:
    """Print the configuration, or write or remove its files."""
    folder = SshFolder(Path.home() / ".ssh")
    if remove:
        await asyncio.to_thread(folder.remove)
        session.say("What `pai ssh-config --write` had written to {folder} is gone.", folder=str(folder.path))
        return OK
    gateway = await find_gateway(session.client)
    running = await _running(session.client)
    paths = {job: folder.key_path(_file_name(job)) for job in running.keys}
    blocks = _blocks(session, hosts(running.tasks, {job: path.as_posix() for job, path in paths.items()}))
    try:
        text = config(gateway.host, gateway.port, folder.known_hosts.as_posix(), blocks)
    except UnwritableNameError as error:
        raise RemoteError(
            msg(
                "{path} cannot stand in a file of OpenSSH, and the files are to be there.", path=error.args[0]
            )
        ) from None
    if not write:
        print(text, end="")
        return OK
    keys = {_file_name(job): key for job, key in running.keys.items()}
    await asyncio.to_thread(folder.write, text, known_hosts(gateway.host_key), keys)
    _tell(session, blocks, folder)
    return OK


async def _running(client: Client) -> _Running:
    user = (await client.whoami())["username"]
    tasks: dict[str, list[LoginName]] = {}
    keys: dict[str, str] = {}

    async def look(job: str) -> None:
        try:
            info = await client.ssh(user, job)
            found = [LoginName(user, job, each["task"]) for each in info["containers"] if each["off"] is None]
            if found:
                keys[job] = await client.ssh_key(user, job)
                tasks[job] = found
        except ApiError as error:
            # it ended, or was deleted, since it was listed
            if error.status != 404:
                raise

    jobs = [job["name"] for job in await client.jobs(user) if job["state"] == "RUNNING"]
    await side_by_side(jobs, look)
    return _Running([task for job in jobs for task in tasks.get(job, ())], keys)


def _blocks(session: CliSession, found: Sequence[Host]) -> list[Host]:
    """Leave out, and say so, what cannot be written: OpenSSH has no way to quote every character."""
    kept = []
    for host in found:
        try:
            quoted(str(host.login))
        except UnwritableNameError as error:
            text = msg("{login} cannot stand in a file of OpenSSH: use `pai ssh`.", login=error.args[0])
            print(printable(text.in_locale(session.locale)), file=sys.stderr)
        else:
            kept.append(host)
    return kept


def _tell(session: CliSession, blocks: Sequence[Host], folder: SshFolder) -> None:
    if session.as_json:
        session.print_json([{"hosts": list(host.aliases), "user": str(host.login)} for host in blocks])
    elif not blocks:
        session.say("Nothing of yours runs now: the configuration has no tasks.")
    else:
        program = ["ssh"] if _is_read(folder) else ["ssh", "-F", str(folder.config)]
        for host in blocks:
            print(printable(shlex.join([*program, host.aliases[-1]])))


def _is_read(folder: SshFolder) -> bool:
    """Return whether ssh looks there by itself: it goes by the account's home, whatever HOME is."""
    try:
        return folder.path == Path(pwd.getpwuid(os.getuid()).pw_dir) / ".ssh"
    except KeyError:  # an account without an entry: ssh does not start at all
        return True


def _file_name(job: str) -> str:
    # no name of a job's is one that means a folder then
    return f"{word_of(job)}.key"


# `pai ssh-info`, `pai ssh-key` and `pai keys`: with what one logs in by other programs than `pai`.


async def ssh_info(session: CliSession, *, name: str, user: str | None) -> int:
    """Show how other programs log into the running tasks of a job."""
    info = await session.client.ssh(await session.owner(user), name)
    if session.as_json:
        session.print_json(info)
        return OK
    header = [msg("TASK"), msg("COMMAND")]
    rows = [[container["task"], _command(session, name, info, container)] for container in info["containers"]]
    print(table([title.in_locale(session.locale) for title in header], rows))
    print()
    files, gateway = info["keyPair"], info["gateway"]
    about = [
        (msg("Key"), f"pai ssh-key {name} -o {_key_file(name)}"),
        (msg("In the storage"), f"{files['folderPath']}/{files['privateKeyFileName']}"),
        # as ssh shows it when it sees the gateway for the first time
        (
            msg("Gateway's key"),
            asyncssh.import_public_key(gateway["hostKey"]).get_fingerprint() if gateway else "",
        ),
    ]
    print(pairs((title.in_locale(session.locale), value) for title, value in about))
    return OK


async def ssh_key(session: CliSession, *, name: str, user: str | None, form: str, output: str | None) -> int:
    """Return the key of a job."""
    text = await session.client.ssh_key(await session.owner(user), name, form)
    if output is None:
        print(text, end="" if text.endswith("\n") else "\n")
        return OK
    try:
        await asyncio.to_thread(write_private, Path(output), text)
    except OSError as error:
        reason = error.strerror or str(error)
        raise LocalFileError(msg("{file} cannot be written: {reason}.", file=output, reason=reason)) from None
    return OK


async def keys_list(session: CliSession, *, user: str | None) -> int:
    """List the public keys that somebody registered."""
    keys = await session.client.public_keys(await session.owner(user))
    if session.as_json:
        session.print_json(keys)
    elif not keys:
        session.say("No public key is registered.")
    else:
        header = [msg("FINGERPRINT"), msg("TYPE"), msg("ADDED"), msg("COMMENT")]
        rows = [[key["fingerprint"], key["type"], moment(key["addedTime"]), key["comment"]] for key in keys]
        print(table([title.in_locale(session.locale) for title in header], rows))
    return OK


async def keys_add(session: CliSession, *, user: str | None, file: str) -> int:
    """Register a public key."""
    text = await asyncio.to_thread(_read, file)
    owner = await session.owner(user)
    key = await session.client.add_public_key(owner, text.strip())
    if session.as_json:
        session.print_json(key)
    else:
        session.say(
            "{fingerprint} opens every task of {user} from now on.",
            fingerprint=key["fingerprint"],
            user=owner,
        )
    return OK


async def keys_remove(session: CliSession, *, user: str | None, fingerprint: str) -> int:
    """Forget a public key."""
    await session.client.remove_public_key(await session.owner(user), fingerprint)
    if session.as_json:
        session.print_json({"fingerprint": fingerprint})
    else:
        session.say("{fingerprint} opens nothing any more.", fingerprint=fingerprint)
    return OK


def _command(session: CliSession, job: str, info: SshInfo, container: SshContainer) -> str:
    """Write the line of shell that logs into a task, or why there is none."""
    if container["off"] is not None:
        return msg("SSH is off: {reason}", reason=container["off"]).in_locale(session.locale)
    host = container["sshIp"]
    if not container["published"]:
        host = gateway_of(info["gateway"], session.client.url).host
    target = shlex.quote(f"{container['sshUser']}@{host}")
    return f"ssh -i {_key_file(job)} -p {container['sshPort']} {target}"


def _key_file(job: str) -> str:
    # not one that a shell takes for a home folder
    return f"./{job}.key"


def _read(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise LocalFileError(msg("{file} holds no public key.", file=file)) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise LocalFileError(msg("{file} cannot be read: {reason}.", file=file, reason=reason)) from None
