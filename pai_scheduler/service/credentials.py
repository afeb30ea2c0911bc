"""Credentials and files that tasks get: a token for the storage, a registry login, the launcher."""

from __future__ import annotations

import hashlib
import hmac
from functools import cache
from importlib import resources
from pathlib import Path
from urllib.parse import quote, urlsplit

from pai_scheduler.data_folder.secret_file import kept_secret
from pai_scheduler.engine.protocol import RegistryLogin
from pai_scheduler.i18n import Message, msg
from pai_scheduler.principal import Principal
from pai_scheduler.storage.files import Files
from pai_scheduler.storage.paths import PASSING, Problem, StorageError

# What a job proves itself with to the storage: a token of its own, worth nothing once it has ended.

_PREFIX = "paijob-"


class JobTokens:
    """Makes and recognises the tokens of jobs. They are not kept: each follows from the job's id."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    @classmethod
    def in_folder(cls, folder: Path) -> JobTokens:
        """Use the secret kept in a folder (made at first): tasks run on over a restart, with their tokens."""
        return cls(kept_secret(folder / "job-tokens.key"))

    def token(self, job_id: str) -> str:
        """Return a job's token."""
        return f"{_PREFIX}{job_id}-{self._proof(job_id)}"

    def job_of(self, token: str) -> str | None:
        """Return whose token this is, by the job's id; None where it is none of ours."""
        prefix, _, rest = token.partition("-")
        job_id, _, proof = rest.rpartition("-")
        genuine = hmac.compare_digest(self._proof(job_id).encode(), proof.encode("utf-8", "surrogatepass"))
        return job_id if f"{prefix}-" == _PREFIX and genuine else None

    def _proof(self, job_id: str) -> str:
        return hmac.digest(self._secret, job_id.encode("utf-8", "surrogatepass"), hashlib.sha256).hex()


# What lets a task's programs into the storage as the job's user, without their knowing of it.
#
# `requests`, and with it the `hdfs` library, reads the netrc file that `NETRC` names; `hdfscli` the
# configuration that `HDFSCLI_CONFIG` names.

#: names of the two files
NETRC, HDFSCLI = "netrc", "hdfscli.cfg"


def access_files(user: str, token: str, default_fs_uri: str) -> dict[str, bytes]:
    """Make the files; none where the storage is not reached over HTTP.

    The user's name is only for who reads it: the storage goes by the token. It is encoded, as a netrc file
    ends a name at a space, and `requests` sends no name beyond Latin-1.
    """
    url = urlsplit(default_fs_uri)
    if url.scheme not in ("http", "https") or not url.hostname:
        return {}
    login = quote(user, safe="")
    config = f"[global]\ndefault.alias = pai\n\n[pai.alias]\nurl = {default_fs_uri}\nuser = {login}\n"
    return {
        NETRC: f"machine {url.hostname} login {login} password {token}\n".encode(),
        HDFSCLI: config.encode(),
    }


# Who pulls a job's image: the login that its authFile names (OpenPAI's job tutorial, "authFile").


async def read_login(files: Files, principal: Principal, uri: str) -> RegistryLogin:
    """Read an authFile, as `principal` may; its variables are filled in already.

    StorageError: its message names the file, and the line, but never what is a secret.
    """
    try:
        contents = await files.read_small(principal, files.names.resolve(uri))
    except StorageError as error:
        if error.problem in PASSING:
            raise
        message = msg("The authFile {uri} cannot be read. {reason}", uri=uri, reason=error.message)
        raise StorageError(error.problem, message) from error
    return parse_login(contents, uri)


def parse_login(contents: bytes, uri: str) -> RegistryLogin:
    """Take an authFile apart: three lines, the registry, the user name, the password. StorageError."""
    try:
        text = contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _useless(uri, msg("it is not UTF-8 text")) from error
    lines = [line.rstrip("\r") for line in text.split("\n")]
    # a password may begin or end with a space; what stands before it does not
    values = [lines[0].strip(), *(line.strip() for line in lines[1:2]), *lines[2:3]]
    names = (msg("the registry"), msg("the user name"), msg("the password"))
    for number, name in enumerate(names):
        if number >= len(values) or not values[number].strip():
            raise _wrong_line(uri, number + 1, msg("{what} is missing", what=name))
    for number, line in enumerate(lines[3:], 4):
        if line.strip():
            raise _wrong_line(uri, number, msg("there is more than three lines"))
    return RegistryLogin(*values)


def _wrong_line(uri: str, line: int, problem: Message) -> StorageError:
    return _useless(uri, msg("line {line}: {problem}", line=line, problem=problem))


def _useless(uri: str, problem: Message) -> StorageError:
    return StorageError(
        Problem.INVALID,
        msg(
            "The authFile {uri} cannot be used: {problem}. It has three lines: the registry, the user name, "
            "the password.",
            uri=uri,
            problem=problem,
        ),
    )


# The launcher (`distributed/launch.py`) for tasks whose command names it: it is in no image.

#: What a command names it by: the variable with its path.
VARIABLE = "PAI_LAUNCH"
LAUNCHER = "launch.py"


def launcher_files(command: str) -> dict[str, bytes]:
    """Return the files that a command needs to start a program in several tasks; most need none."""
    return {LAUNCHER: _source()} if VARIABLE in command else {}


@cache
def _source() -> bytes:
    return resources.files("pai_scheduler.distributed").joinpath(LAUNCHER).read_bytes()
