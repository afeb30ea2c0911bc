"""Writing into the cells of a notebook in a real JupyterLab, and running them, also on a busy machine.

What is typed before the notebook is ready goes elsewhere: JupyterLab takes the focus for the notebook itself
when that has come, and the keys are its shortcuts then. So a text counts as written when the editor shows it.
A cell that is run before the notebook has its kernel is not run at all, and nothing says so. So it counts as
run when its number is no longer empty, and is run again until then.
"""

from __future__ import annotations

from playwright import async_api, sync_api

#: How often a text is written or a cell run that was not taken, and ms until it counts as not taken.
_TRIES, _TAKEN = 12, 5000
_EDITOR = ".cm-content"
_PROMPT = ".jp-InputPrompt"
_NOT_RUN = "[ ]:"


def a_cell(page: async_api.Page, place: int = 0) -> async_api.Locator:
    """Find a code cell of the notebook by its place: running the last one adds another after it."""
    return page.locator(".jp-Notebook .jp-CodeCell").nth(place)


async def write(cell: async_api.Locator, text: str) -> None:
    """Write a line into a cell in place of what is there; AssertionError where the editor never takes it."""
    editor = cell.locator(_EDITOR)
    for left in reversed(range(_TRIES)):
        await editor.click()
        await editor.fill(text)
        try:
            await async_api.expect(editor).to_have_text(text, timeout=_TAKEN)
        except AssertionError:
            if not left:
                raise
        else:
            return


async def run(cell: async_api.Locator, text: str) -> None:
    """Write a line into a cell and run it; AssertionError where the notebook never gets its kernel."""
    await write(cell, text)
    for left in reversed(range(_TRIES)):
        await cell.locator(_EDITOR).press("Shift+Enter")
        try:
            await async_api.expect(cell.locator(_PROMPT)).not_to_have_text(_NOT_RUN, timeout=_TAKEN)
        except AssertionError:
            if not left:
                raise
        else:
            return


def write_and_wait(cell: sync_api.Locator, text: str) -> None:
    """Do what `write` does, with playwright's blocking calls."""
    editor = cell.locator(_EDITOR)
    for left in reversed(range(_TRIES)):
        editor.click()
        editor.fill(text)
        try:
            sync_api.expect(editor).to_have_text(text, timeout=_TAKEN)
        except AssertionError:
            if not left:
                raise
        else:
            return


def run_and_wait(page: sync_api.Page, text: str) -> None:
    """Do what `run` does in the notebook's first cell, with playwright's blocking calls."""
    cell = page.locator(".jp-Notebook .jp-CodeCell").first
    write_and_wait(cell, text)
    for left in reversed(range(_TRIES)):
        cell.locator(_EDITOR).press("Shift+Enter")
        try:
            sync_api.expect(cell.locator(_PROMPT)).not_to_have_text(_NOT_RUN, timeout=_TAKEN)
        except AssertionError:
            if not left:
                raise
        else:
            return
