"""Shared folders of the cluster file that a scheduler can give: not with every engine, none of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pai_scheduler.cluster.shared_folders import SharedFolder
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.i18n import Message, msg


def check_shared_folders(folders: Sequence[SharedFolder], engine: str, own: Sequence[Path | None]) -> None:
    """Refuse what cannot be; StartError. `own`: where the scheduler keeps what is not for everybody."""
    for refusal in find_refusals(folders, engine, own):
        raise StartError(refusal)


def find_refusals(
    folders: Sequence[SharedFolder], engine: str, own: Sequence[Path | None]
) -> Iterator[Message]:
    """Find each reason for which a scheduler does not start with these folders."""
    if folders and engine == "process":
        yield msg(
            "The process engine has no shared folders (sharedFolders in the cluster file): its tasks all "
            "run as one account of this machine, and see the same files. Use --engine docker."
        )
        return
    for folder in folders:
        if folder.create and engine == "swarm":
            yield msg(
                "In a Swarm no folder is made on the machines: make that of the shared folder {name} on "
                "each of them, and leave create out.",
                name=folder.name,
            )
        for place in own:
            if place is not None and folder.meets(str(place.expanduser().absolute())):
                yield msg(
                    "The shared folder {name} ({source}) would open {place}, where the scheduler keeps "
                    "what is not for everybody. Choose another folder.",
                    name=folder.name,
                    source=folder.source,
                    place=place,
                )
