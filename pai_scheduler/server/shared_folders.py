"""Which shared folders of the cluster file a scheduler can give: not with every engine, none of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pai_scheduler.cluster.shared_folders import SharedFolder
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.job.messages import msg


def check_shared_folders(folders: Sequence[SharedFolder], engine: str, own: Sequence[Path | None]) -> None:
    """Refuse what cannot be; StartError. `own`: where the scheduler keeps what is not for everybody."""
    if folders and engine == "process":
        raise StartError(
            msg(
                "The process engine has no shared folders (sharedFolders in the cluster file): its tasks all "
                "run as one account of this machine, and see the same files. Use --engine docker."
            )
        )
    for folder in folders:
        if folder.create and engine == "swarm":
            raise StartError(
                msg(
                    "In a Swarm no folder is made on the machines: make that of the shared folder {name} on "
                    "each of them, and leave create out.",
                    name=folder.name,
                )
            )
        for place in own:
            if place is not None and folder.meets(str(place.expanduser().absolute())):
                raise StartError(
                    msg(
                        "The shared folder {name} ({source}) would open {place}, where the scheduler keeps "
                        "what is not for everybody. Choose another folder.",
                        name=folder.name,
                        source=folder.source,
                        place=place,
                    )
                )
