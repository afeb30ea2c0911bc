"""`pai ssh-info`, `pai ssh-key` and `pai keys`: with what one logs in by other programs than `pai`."""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path

import asyncssh

from pai_scheduler.client.ssh.connection import gateway_of
from pai_scheduler.client.storage.transfer import LocalFileError
from pai_scheduler.i18n import msg
from pai_scheduler.rest.models import SshContainer, SshInfo

from .session import OK, CliSession
from .ssh_files import write_private
from .tables import moment, pairs, table


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
