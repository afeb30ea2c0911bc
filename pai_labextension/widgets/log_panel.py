"""A job's logs: choose attempt, task and stream, read along, download."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from html import escape
from typing import Any

import ipywidgets as widgets

from pai_scheduler.client.rest import Client
from pai_scheduler.rest.models import AttemptInfo, TaskStatus

from .background import Background, at_home
from .language import Language
from .links import log_link, server_prefix
from .log_follow import LogChoice, follow_log
from .log_view import LogView
from .look import notice, show


class LogPanel(widgets.VBox):
    """The log of one task at a time; `on_choice` is told whose it is, each time the job is looked at."""

    def __init__(
        self,
        client: Client,
        job: str,
        say: Language,
        background: Background,
        on_choice: Callable[[LogChoice], None],
    ) -> None:
        self._on_choice = on_choice
        self._client, self._job, self._say, self._background = client, job, say, background
        self._user = ""
        self._attempts: list[AttemptInfo] = []
        self._following: asyncio.Task[Any] | None = None
        self._choice: LogChoice | None = None
        self._quiet = False
        self._chosen_by_hand = False
        self._newest: int | None = None
        self.attempt = self._dropdown(say("Attempt"), "160px")
        self.task = self._dropdown(say("Task"), "260px")
        self.stream = self._dropdown(say("Stream"), "240px")
        self.stream.options = [(say("all output"), "all"), ("stdout", "stdout"), ("stderr", "stderr")]
        self.stream.value = "all"
        self.view = LogView(say("Nothing has been written yet."))
        self.trouble = widgets.HTML()
        self.link = widgets.HTML(layout=widgets.Layout(width="auto"))
        show(self.trouble, False)
        controls = widgets.HBox(
            [self.task, self.attempt, self.stream, self.link],
            layout=widgets.Layout(flex_flow="row wrap", align_items="center", overflow="visible"),
        )
        super().__init__([controls, self.trouble, self.view])
        for entry in (self.attempt, self.task, self.stream):
            entry.observe(at_home(self._picked), "value")
        show(self, False)
        background.spawn(self.view.run(), "pai-log-paint")

    def load(self, user: str, attempts: list[AttemptInfo]) -> None:
        """Offer the logs of these attempts; follow the last attempt's until another one is chosen."""
        self._user = user
        launched = [attempt for attempt in attempts if _has_run(attempt)]
        if not launched:
            return
        is_new = len(launched) != len(self._attempts)
        self._attempts = launched
        show(self, True)
        if is_new:
            self._offer()
        trigger = launched[-1]["trigger"]
        if trigger is not None and not self._chosen_by_hand:
            self._set(task=(trigger["taskRole"], trigger["taskIndex"]))
        self._follow()

    def _offer(self) -> None:
        """Offer the tasks, and the attempts where there is more than one."""
        last = self._attempts[-1]
        names = [
            (f"{role} {status['taskIndex']}", (role, status["taskIndex"]))
            for role, statuses in last["taskRoles"].items()
            for status in statuses["taskStatuses"]
        ]
        numbers = [(str(attempt["attempt"] + 1), attempt["attempt"]) for attempt in self._attempts]
        keep = self.task.value
        older = self.attempt.value if self.attempt.value != self._newest else None
        self._newest = last["attempt"]
        self._quiet = True
        try:
            self.task.options = names
            self.task.value = keep if keep in [value for _, value in names] else names[0][1]
            self.attempt.options = numbers
            self.attempt.value = self._newest if older is None else older
        finally:
            self._quiet = False
        show(self.attempt, len(numbers) > 1)

    def _set(self, task: tuple[str, int]) -> None:
        if task in [value for _, value in self.task.options]:
            self._quiet = True
            try:
                self.task.value = task
            finally:
                self._quiet = False

    def _picked(self, _change: Any) -> None:
        if not self._quiet and self._attempts:
            self._chosen_by_hand = True
            self._follow()

    def _follow(self) -> None:
        role, index = self.task.value
        choice = LogChoice(
            role,
            index,
            self.stream.value,
            self.attempt.value,
            live=self.attempt.value == self._attempts[-1]["attempt"],
        )
        self._on_choice(choice)
        if choice == self._choice:
            return
        self._choice = choice
        if self._following is not None:
            self._following.cancel()
        self.view.clear()
        self._show_trouble(None)
        self._show_link(choice)
        self._following = self._background.spawn(self._read(choice), "pai-log")

    async def _read(self, choice: LogChoice) -> None:
        await follow_log(
            self._client,
            self._user,
            self._job,
            choice,
            on_begin=self.view.clear,
            on_data=self.view.feed,
            on_trouble=self._show_trouble,
        )
        if self.trouble.value:
            # refused (not there yet): to be asked for again with the job's next change
            self._choice = None

    def _show_trouble(self, sentence: str | None) -> None:
        self.trouble.value = notice(sentence, "warning") if sentence else ""
        show(self.trouble, bool(sentence))

    def _show_link(self, choice: LogChoice) -> None:
        prefix = server_prefix()
        show(self.link, prefix is not None)
        if prefix is not None:
            address = escape(log_link(prefix, self._user, self._job, choice), quote=True)
            name = escape(f"{self._job}-{choice.role}-{choice.index}-{choice.stream}.log", quote=True)
            self.link.value = (
                f'<a href="{address}" download="{name}">{escape(self._say("Download the log"))}</a>'
            )

    def _dropdown(self, label: str, width: str) -> widgets.Dropdown:
        return widgets.Dropdown(
            description=label,
            tooltip=label,
            layout=widgets.Layout(width=width),
            style={"description_width": "initial"},
        )


def _has_run(attempt: AttemptInfo) -> bool:
    return any(_is_launched(task) for role in attempt["taskRoles"].values() for task in role["taskStatuses"])


def _is_launched(task: TaskStatus) -> bool:
    return task["taskState"] != "WAITING" or bool(task["containerId"])
