"""Who pulls a job's image: the login that its authFile names (OpenPAI's job tutorial, "authFile")."""

from __future__ import annotations

from .engine.protocol import RegistryLogin
from .job.environment import storage_uris
from .job.messages import Message, msg
from .job.spec import JobSpec
from .storage.local import LocalStorage, StorageError


class LoginError(Exception):
    """An authFile is of no use; `message` names the file, and the line, but never what is a secret."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


async def read_login(
    spec: JobSpec, user: str, default_fs_uri: str, storage: LocalStorage | None
) -> RegistryLogin | None:
    """Read a job's authFile, as its user may; None where the job names none. LoginError."""
    uri = storage_uris(spec, user, default_fs_uri).auth_file
    if not uri:
        return None
    if storage is None:
        problem = msg("the scheduler cannot read the cluster's storage {root}", root=default_fs_uri)
        raise LoginError(_useless(uri, problem))
    try:
        contents = await storage.read_small(uri, user)
    except StorageError as error:
        raise LoginError(msg("The authFile cannot be read. {reason}", reason=error.message)) from error
    return parse_login(contents, uri)


def parse_login(contents: bytes, uri: str) -> RegistryLogin:
    """Take an authFile apart: three lines, the registry, the user name and the password. LoginError."""
    try:
        text = contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LoginError(_useless(uri, msg("it is not UTF-8 text"))) from error
    lines = [line.rstrip("\r") for line in text.split("\n")]
    # a password may begin or end with a space; what stands before it does not
    values = [lines[0].strip(), *(line.strip() for line in lines[1:2]), *lines[2:3]]
    names = (msg("the registry"), msg("the user name"), msg("the password"))
    for number, name in enumerate(names):
        if number >= len(values) or not values[number].strip():
            raise LoginError(_wrong_line(uri, number + 1, msg("{what} is missing", what=name)))
    for number, line in enumerate(lines[3:], 4):
        if line.strip():
            raise LoginError(_wrong_line(uri, number, msg("there is more than three lines")))
    return RegistryLogin(*values)


def _wrong_line(uri: str, line: int, problem: Message) -> Message:
    return _useless(uri, msg("line {line}: {problem}", line=line, problem=problem))


def _useless(uri: str, problem: Message) -> Message:
    return msg(
        "The authFile {uri} cannot be used: {problem}. It has three lines: the registry, the user name, the "
        "password.",
        uri=uri,
        problem=problem,
    )
