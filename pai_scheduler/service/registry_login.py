"""Who pulls a job's image: the login that its authFile names (OpenPAI's job tutorial, "authFile")."""

from __future__ import annotations

from pai_scheduler.engine.protocol import RegistryLogin
from pai_scheduler.i18n import Message, msg
from pai_scheduler.principal import Principal
from pai_scheduler.storage.files import Files
from pai_scheduler.storage.paths import PASSING, Problem, StorageError


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
