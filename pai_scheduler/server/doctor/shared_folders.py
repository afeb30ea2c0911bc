"""What the doctor finds of shared folders: what this engine cannot give, and what is not on the machine."""

from __future__ import annotations

import shlex
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from pai_scheduler.cluster.shared_folders import SharedFolder
from pai_scheduler.i18n import msg
from pai_scheduler.server.shared_folders import find_refusals

from .finding import Finding, good, note, wrong


def of_shared_folders(
    folders: Sequence[SharedFolder], engine: str, own: Sequence[Path | None], *, tasks_here: bool
) -> Iterator[Finding]:
    """Judge the shared folders of a cluster file. `own`: where the scheduler keeps what is not for everybody.

    `tasks_here`: all tasks run on this machine, so that the folders are to be on it.
    """
    refusals = list(find_refusals(folders, engine, own))
    for refusal in refusals:
        yield wrong(refusal, msg("The scheduler does not start with it."))
    on_disk = [folder for folder in folders if folder.source]
    if refusals or not on_disk:
        return
    if not tasks_here:
        yield note(
            msg(
                "Tasks with shared folders ({names}) do not start on a machine that lacks these folders.",
                names=", ".join(folder.name for folder in on_disk),
            ),
            msg(
                "Look on each machine that runs tasks: {command}",
                command=f"ls -d {shlex.join(sorted({str(_known_part(folder)) for folder in on_disk}))}",
            ),
        )
        return
    found = [finding for folder in on_disk if (finding := _on_this_machine(folder)) is not None]
    yield from found
    if not found:
        names = ", ".join(folder.name for folder in on_disk)
        yield good(msg("The shared folders are on this machine: {names}.", names=names))


def _on_this_machine(folder: SharedFolder) -> Finding | None:
    """Judge one folder of this machine; None: it is there."""
    place = Path(_known_part(folder))
    try:
        mode = place.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return _missing(folder, place)
    except OSError as error:
        # Docker's own account is root, whoever asks
        return note(
            msg(
                "This account cannot see whether the shared folder {name} is there: {error}",
                name=folder.name,
                error=f"{place}: {error.strerror}",
            ),
            msg("Look as root: {command}", command=f"sudo ls -ld {shlex.quote(str(place))}"),
        )
    if stat.S_ISDIR(mode):
        return None
    return wrong(
        msg("The shared folder {name} is no folder: {place} is a file.", name=folder.name, place=place),
        msg("Name a folder as its source in the cluster file."),
    )


def _missing(folder: SharedFolder, place: Path) -> Finding:
    command = f"sudo mkdir -p {shlex.quote(str(place))}"
    return wrong(
        msg("The shared folder {name} has no {place} on this machine.", name=folder.name, place=place),
        msg(
            "Mount it or make it ({command}), or correct its source: until then tasks that have it do not "
            "start.",
            command=command,
        ),
    )


def _known_part(folder: SharedFolder) -> PurePosixPath:
    """Return what is to be there for everybody: the path in front of a name, and of what is made."""
    place = PurePosixPath(folder.source)
    fixed = PurePosixPath("/")
    for part in place.parts[1:]:
        if "{" in part:
            return fixed
        fixed /= part
    return fixed.parent if folder.create else fixed
