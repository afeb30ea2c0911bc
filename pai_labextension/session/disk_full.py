"""Has a file that is not saved for lack of room answered with a sentence that says so, and what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

from jupyter_server.serverapp import ServerApp
from jupyter_server.services.contents.filemanager import AsyncFileContentsManager
from tornado.web import HTTPError

#: No room on the disk, or in what somebody may have of it.
_FULL = (errno.ENOSPC, errno.EDQUOT)


def say_when_full(server: ServerApp) -> None:
    """Have a server's own file manager say it; to be called before the server makes that.

    One that keeps files elsewhere than on a disk knows better why it cannot.
    """
    manager: Any = server.contents_manager_class
    if issubclass(manager, AsyncFileContentsManager) and not issubclass(manager, SaysWhenFull):
        made: Any = type(f"PAI{manager.__name__}", (SaysWhenFull, manager), {})
        server.contents_manager_class = made


class SaysWhenFull(AsyncFileContentsManager):
    """Keeps files as the manager does that it is made of; where the disk is full its errors are for people.

    JupyterLab shows the sentence in its own dialog.
    """

    async def save(self, model: dict[str, Any], path: str = "") -> Any:
        """Save a file, or a piece of one that is uploaded; new files come here too."""
        with self._in_words():
            return await super().save(model, path)  # type: ignore[no-untyped-call]

    async def create_checkpoint(self, path: str) -> Any:
        """Keep a copy of a file, as after each save."""
        with self._in_words():
            return await super().create_checkpoint(path)  # type: ignore[no-untyped-call]

    async def copy(self, from_path: str, to_path: str | None = None) -> Any:
        """Copy a file or folder."""
        with self._in_words():
            return await super().copy(from_path, to_path)  # type: ignore[no-untyped-call]

    async def delete_file(self, path: str) -> None:
        """Delete a file, into the trash where that is set."""
        with self._in_words(removing=True):
            await super().delete_file(path)  # type: ignore[no-untyped-call]

    @contextmanager
    def _in_words(self, *, removing: bool = False) -> Iterator[None]:
        """Have an error say it in words, where it is for lack of room; any other stays as it is."""
        try:
            yield
        except (HTTPError, OSError) as error:
            if not is_full(error):
                raise
            # loaded when it is needed: a server starts without
            from .disk_full_messages import not_removed, not_saved

            trash = bool(self.delete_to_trash)
            said = not_removed() if removing else not_saved(os.statvfs(self.root_dir), trash=trash)
            raise HTTPError(HTTPStatus.INSUFFICIENT_STORAGE, said) from error


def is_full(error: BaseException) -> bool:
    """Return whether an error came about because there was no room, whatever was made of it since."""
    return any(isinstance(one, OSError) and one.errno in _FULL for one in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    open_ones: list[BaseException | None] = [error]
    while open_ones:
        one = open_ones.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            # what failed while the first failure was cleaned up hides it
            open_ones += [one.__cause__, one.__context__]
