"""The magic itself: which of the two it is, and how what goes wrong is shown."""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class

from pai_scheduler.client.calls.function import use_locale_of

from ..locales import default_locale
from .cell import run_cell
from .line import run_line


@magics_class
class PAIMagics(Magics):
    """`%pai COMMAND …` runs the command `pai`; a cell that begins with `%%pai` runs as a job."""

    @line_cell_magic
    def pai(self, line: str, cell: str | None = None) -> None:
        """Run the command `pai`, or the cell as a job. `%pai --help` and `%%pai --help` say more."""
        __tracebackhide__ = True
        locale = default_locale()
        if cell is None:
            run_line(line, locale)
            return
        shell: Any = self.shell
        shell.push(run_cell(line, cell, shell.user_ns, locale))


def register(shell: InteractiveShell) -> None:
    """Make the magics known to IPython."""
    shell.register_magics(PAIMagics(shell))
    # remote functions then speak the language that was chosen in JupyterLab, too
    use_locale_of(default_locale)
