"""Shows on a terminal how far a transfer is; nothing when piped."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NoReturn, TextIO

from pai_scheduler.client.storage.transfer import Tell, TransferProgress
from pai_scheduler.i18n import msg

from .tables import printable

if TYPE_CHECKING:
    from tqdm.auto import tqdm


@contextmanager
def shown_progress(locale: str, stream: TextIO | None = None) -> Iterator[Tell | None]:
    """Return what a transfer tells its progress to; None where nobody would see it.

    Nothing is shown before the first of it is told: there may be nothing to transfer.
    """
    stream = stream or sys.stderr
    if not stream.isatty():
        yield None
        return
    with ExitStack() as stack:
        bar: tqdm[NoReturn] | None = None

        def tell(progress: TransferProgress) -> None:
            nonlocal bar
            if bar is None:
                from tqdm.auto import tqdm  # only for who watches a transfer

                bar = stack.enter_context(
                    tqdm(
                        total=progress.bytes_total,
                        file=stream,
                        unit="B",
                        unit_scale=True,
                        dynamic_ncols=True,
                        leave=False,
                        miniters=0,
                    )
                )
            files = msg("files {done}/{all}", done=progress.files_done, all=progress.files_total)
            words = f"{files.in_locale(locale)}, {printable(progress.current)}"
            bar.set_postfix_str(words, refresh=False)
            bar.total = progress.bytes_total
            bar.update(progress.bytes_done - bar.n)
            if progress.bytes_done == progress.bytes_total:
                bar.refresh()  # tqdm draws ten times a second: the end may come between

        yield tell
