"""Choice of the code that goes along with a job: a folder of this machine, patterns, what they choose."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from pai_scheduler.client.storage.code import CodeError, CodeSelection, CodeSettings, plan, read_settings
from pai_scheduler.client.storage.transfer import amount

from .background import Background, at_home
from .code_file import save_settings
from .explorer.local_path import LocalPath
from .explorer.words import reason
from .fields import wide
from .language import Language
from .look import button, notice, show

#: Files that are listed one by one.
_MOST_FILES = 100
#: Seconds without a change before the folder is looked through.
QUIET = 0.5


class CodeView(widgets.VBox):
    """The code section of the form; with a `folder`, its code goes along unless a person says no.

    `on_change` is called when the answer to `settings` may be another."""

    def __init__(
        self,
        say: Language,
        background: Background,
        folder: Path | None,
        *,
        on_change: Callable[[], None],
        quiet: float = QUIET,
    ) -> None:
        self._say, self._background, self._quiet = say, background, quiet
        self._on_change: Callable[[], None] = lambda: None
        self._saved: CodeSettings | None = None
        self._looking: asyncio.Task[Any] | None = None
        self._loading = False
        self.enabled = widgets.Checkbox(
            description=say("Upload the code of a folder with the job"),
            indent=False,
            layout=widgets.Layout(width="auto"),
        )
        self.folder = LocalPath(
            say("Folder of the code on this notebook server"),
            str(Path.cwd() if folder is None else folder),
            folders_only=True,
            description=say("Folder"),
            **wide(),
        )
        self.include = _patterns(say("Include"), say("One pattern per line, as **/*.py"))
        self.exclude = _patterns(say("Exclude"), say("One pattern per line; what it names stays here"))
        self.unique = widgets.Checkbox(
            description=say("Give the job a name of its own each time (name_ and 8 characters)"),
            indent=False,
            layout=widgets.Layout(width="auto"),
        )
        self.save = button(
            say("Keep these settings for this folder"),
            tooltip=say("Written to .pai/settings.json in the folder, which `pai submit` reads too"),
            on_click=self._save,
        )
        self.files, self.problem = widgets.HTML(), widgets.HTML()
        self.inner = widgets.VBox(
            [self.folder, self.include, self.exclude, self.unique, self.save, self.files]
        )
        super().__init__([self.enabled, self.problem, self.inner])
        for entry in (self.enabled, self.include, self.exclude, self.unique):
            entry.observe(at_home(lambda _change: self._edited()), "value")
        self.folder.observe(at_home(lambda _change: self._read()), "value")
        self.enabled.value = folder is not None
        self._read()
        self._on_change = on_change

    @property
    def settings(self) -> CodeSettings:
        """Return what a person chose. A name of its own is given by the form, where it can be seen."""
        return CodeSettings(
            enabled=self.enabled.value,
            include=_lines(self.include.value),
            exclude=_lines(self.exclude.value),
        )

    @property
    def names_anew(self) -> bool:
        """Return whether each submit gives the job a name of its own."""
        return bool(self.enabled.value and self.unique.value)

    @property
    def path(self) -> Path:
        """Return the folder whose code it is."""
        return self.folder.path or Path.cwd()

    def _read(self) -> None:
        """Show the settings that a folder has; the defaults, and why, where they are wrong."""
        problem = ""
        try:
            settings = read_settings(self.path)
        except CodeError as error:
            problem = notice(self._say.of(error.message), "error")
            settings = CodeSettings()
        self._saved = replace(settings, include=tuple(settings.include), exclude=tuple(settings.exclude))
        self._loading = True
        self.enabled.value = settings.enabled or self.enabled.value
        self.include.value = "\n".join(settings.include)
        self.exclude.value = "\n".join(settings.exclude)
        self.unique.value = settings.generate_name
        self._loading = False
        self._tell_problem(problem)
        self._edited()

    def _edited(self) -> None:
        if self._loading:
            return
        show(self.inner, self.enabled.value)
        show(self.save, self._to_save() != self._saved)
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        if self.enabled.value:
            self._looking = self._background.spawn(self._look(), "pai-code")
        self._on_change()

    async def _look(self) -> None:
        """Show what would go along."""
        await asyncio.sleep(self._quiet)
        try:
            code = await asyncio.to_thread(plan, self.path, self.settings)
        except CodeError as error:
            self._tell(notice(self._say.of(error.message), "error"))
        except OSError as error:
            self._tell(notice(reason(self._say, error), "error"))
        else:
            self._tell(_listed(self._say, code))

    def _to_save(self) -> CodeSettings:
        chosen = self.settings
        return CodeSettings(chosen.enabled, chosen.include, chosen.exclude, self.unique.value)

    def _save(self) -> None:
        settings = self._to_save()
        try:
            save_settings(self.path, settings)
        except (CodeError, OSError) as error:
            text = self._say.of(error.message) if isinstance(error, CodeError) else reason(self._say, error)
            self._tell_problem(notice(text, "error"))
            return
        self._tell_problem("")
        self._saved = settings
        self._edited()

    def _tell_problem(self, markup: str) -> None:
        """Return why the settings of the folder cannot be read or kept."""
        self.problem.value = markup
        show(self.problem, bool(markup))

    def _tell(self, markup: str) -> None:
        self.files.value = markup


def _listed(say: Language, code: CodeSelection) -> str:
    heads = "".join(f'<th scope="col">{escape(text)}</th>' for text in (say("Name"), say("Size")))
    rows = "".join(
        f"<tr><td>{escape(file.name)}</td><td>{escape(amount(file.length))}</td></tr>"
        for file in code.files[:_MOST_FILES]
    )
    if (more := len(code.files) - _MOST_FILES) > 0:
        rows += f'<tr><td colspan="2">{escape(say("… and {count} more", count=more))}</td></tr>'
    caption = say.counted(
        "Goes along: {count} file, {size}",
        "Goes along: {count} files, {size}",
        count=len(code.files),
        size=amount(code.length),
    )
    table = (
        f'<details><summary>{escape(caption)}</summary><table class="pai-tasks">'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></details>"
    )
    lacking = "\n".join(f"{left.path}: {left.in_locale(say.locale)}" for left in code.left_out)
    return table + (notice(lacking, "warning") if lacking else "")


def _patterns(label: str, help_text: str) -> widgets.Textarea:
    entry = widgets.Textarea(description=label, placeholder=help_text, tooltip=help_text, rows=2, **wide())
    entry.add_class("pai-code")
    return entry


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())
