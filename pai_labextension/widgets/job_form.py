"""JobForm: write a job (import a file, paste text, fill in a form), see whether it fits, submit it."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import html
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from pai_scheduler.client.rest import ApiError, Client, UnreachableError, start_in_words
from pai_scheduler.client.storage.client import FilesError
from pai_scheduler.client.storage.code import CodeError, SubmitRefusedError, submit_with_code
from pai_scheduler.rest.models import FieldError, Validation

from ..images import LOCAL, image_help
from .code_view import CodeView
from .explorer.picker import Picker
from .explorer.progress_bar import ProgressBar
from .explorer.view import ExplorerView
from .fit import QUIET, ClusterSummary, FitChecker
from .form import FormView, unique_name
from .free import free_line
from .import_view import ImportView
from .job_monitor import JobMonitor
from .labels import place
from .look import Kind, button, notice, show
from .model import JobModel, text_of
from .text_view import TextView
from .top import TopWidget

#: Where the scheduler's refusals belong that are about one field.
_PLACE_OF_CODE = {"ConflictJobError": "$.jobName", "NoVirtualClusterError": "$.virtualCluster"}

_KIND_OF_FIT: dict[str, Kind] = {"now": "success", "later": "warning", "never": "error"}


class NotSubmittedError(RuntimeError):
    """A form's job was not submitted, or nobody knows: what is missing or wrong, or why it was refused."""


class JobForm(TopWidget):
    """A form for one job.

    `config`: the job to begin with, as an object or as text with comments; None: an empty one.
    `client`: how to reach the scheduler; None: as the notebook's environment says.
    `locale`: "en", "zh_CN" or None for the person's own (see `language.default_locale`).
    `code`: the folder whose code goes along; None: as its `.pai/settings.json` says of the present folder.
    Needs a running asyncio loop, as every notebook has (`NoEventLoopError`).
    """

    def __init__(
        self,
        config: Mapping[str, Any] | str | None = None,
        client: Client | None = None,
        locale: str | None = None,
        *,
        code: Path | str | None = None,
        quiet: float = QUIET,
    ) -> None:
        super().__init__(client, locale)
        say = self.say
        text = config if isinstance(config, str) else text_of(empty_job() if config is None else config)
        self.model = JobModel(text, is_new=config is None)
        #: The monitor of the job submitted last.
        self.monitor: JobMonitor | None = None
        self._cluster = ClusterSummary()
        self._server_errors: list[FieldError] = []
        self._submitting = False
        #: The version that was submitted: once is enough.
        self._submitted: int | None = None

        #: The name that was made for a job that has not been submitted yet.
        self._own_name: str | None = None
        self._sending: asyncio.Task[str] | None = None
        self._broken_off = False

        self.picker = Picker(
            say, lambda looked: ExplorerView(self.storage, say, self._background, on_look=looked)
        )
        self.form = FormView(self.model, say, self.picker)
        self.text = TextView(self.model, say)
        self.files = ImportView(self.model, say, on_import=self.open_imported)
        self.tabs = widgets.Tab(
            [self.form, self.text, self.files],
            titles=(say("Fill in a form"), say("Paste text"), say("Import a file")),
        )
        self.code = CodeView(
            say,
            self._background,
            None if code is None else Path(code),
            on_change=lambda: self._show_submit_state(),
        )
        self.code_section = widgets.Accordion([self.code], titles=(say("Code: send a folder along"),))
        if self.code.enabled.value:
            self.code_section.selected_index = 0
        self.bar = ProgressBar(say, self._break_off)
        self.free = widgets.HTML()
        self.fit = widgets.HTML()
        self.problems = widgets.HTML()
        self.submit_button = button(
            say("Submit job"), icon="paper-plane", style="primary", on_click=self._start_submit
        )
        self.needed = widgets.HTML()
        self.needed.add_class("pai-muted")
        self._monitors = widgets.VBox()
        self._fill(
            [
                self.tabs,
                self.code_section,
                self.free,
                self.fit,
                self.problems,
                widgets.HBox(
                    [self.submit_button, self.needed],
                    layout=widgets.Layout(flex_flow="row wrap", align_items="center"),
                ),
                self.bar,
                self.outcome,
                self._monitors,
            ]
        )
        self._checker = FitChecker(
            self.client,
            self._question,
            on_cluster=self._show_cluster,
            on_answer=self._show_answer,
            on_trouble=self._show_trouble,
            quiet=quiet,
        )
        self.model.listen(lambda _source: self._changed())
        self._show_errors()
        if self.model.obstacle is not None:
            self.tabs.selected_index = 1
        self._background.spawn(self._checker.run(), "pai-job-form")
        self._background.spawn(self._help_with_image(), "pai-image-help")

    @property
    def job(self) -> dict[str, Any]:
        """The job as it is now, which may be set: form and text show it then.

        Reading it raises ValueError where the text is no job. What is read is a copy: change it, and set it.
        """
        obstacle = self.model.obstacle
        if obstacle is not None:
            raise ValueError(self.say.of(obstacle))
        return copy.deepcopy(dict(self.model.config))

    @job.setter
    def job(self, job: Mapping[str, Any]) -> None:
        self.model.set_text(text_of(job), self)

    def __repr__(self) -> str:
        name = self.model.config.get("jobName") if isinstance(self.model.config, dict) else None
        return f"JobForm(jobName={name!r})"

    def as_text(self) -> str:
        """Return the job, and whether something in it is to be put right."""
        count = len(self.model.mistakes) + len(self.model.needed)
        text = self.model.text.rstrip()
        if not count:
            return text
        told = self.say("To put right before the job can be submitted: {count}", count=count)
        return f"{text}\n{told}"

    async def submit(self) -> JobMonitor:
        """Submit as the button does, the code first; return the job's monitor, which appears beneath.

        Raises `NotSubmittedError` with what is missing or wrong, or where nobody knows whether it arrived.
        """
        if (obstacle := self._unsubmittable()) is not None:
            raise NotSubmittedError(obstacle)
        self._submitting, self._broken_off = True, False
        self._show_submit_state()
        if self.code.names_anew:
            self._name_anew()
        version = self.model.version
        self._sending = asyncio.create_task(self._deliver(), name="pai-send")
        try:
            name = await self._sending
        except ApiError as error:
            raise NotSubmittedError(self._refused(error, version)) from error
        except CodeError as error:
            raise NotSubmittedError(self._tell_not_submitted(self.say.of(error.message))) from error
        except FilesError as error:
            raise NotSubmittedError(self._tell_not_submitted(error.in_locale(self.say.locale))) from error
        except asyncio.CancelledError:
            if not self._broken_off:
                raise
            words = self.say("Broken off. Submit again, and it goes on where it was.")
            self._tell(notice(words, "warning"))
            raise NotSubmittedError(words) from None
        except UnreachableError as error:
            words = self.say(
                "It is not known whether the job arrived: {error}. Press the button again: "
                "a job of the same name never runs twice.",
                error=error,
            )
            self._tell(notice(words, "error"))
            raise NotSubmittedError(words) from error
        finally:
            self._submitting = False
            self._show_submit_state()
        self._submitted, self._own_name = version, None
        self._show_submit_state()
        self.fit.value = ""  # what it needs is its own now: the monitor says how it goes on
        self._tell(notice(self.say("Submitted: {name}", name=name), "success"))
        self._checker.ask()
        return self._watch(name)

    def open_imported(self) -> None:
        """Go where an imported job can be looked at, or its text put right."""
        self.tabs.selected_index = 0 if self.model.obstacle is None else 1

    def close(self) -> None:
        """Stop everything this widget does in the background, and remove it."""
        if self._made and self.monitor is not None:
            self.monitor.close()
        super().close()

    async def _deliver(self) -> str:
        if not self.code.enabled.value:
            return await self.client.submit(self.model.config)
        self.bar.begin(self.say("Looking for what has changed …"))
        try:
            return await submit_with_code(
                self.client,
                self.storage,
                self.model.config,
                self.code.path,
                self.code.settings,
                self.bar.tell,
            )
        finally:
            self.bar.end()

    def _break_off(self) -> None:
        if self._sending is not None:
            self._broken_off = True
            self._sending.cancel()

    def _name_anew(self) -> None:
        """Return the job a name of its own; one that has not been submitted yet will do."""
        name = self.model.config.get("jobName")
        if name != self._own_name or name is None:
            self._own_name = unique_name(name)
            self.model.edit(("jobName",), self._own_name, self)

    def _start_submit(self) -> None:
        self._background.spawn(self._submit_shown(), "pai-submit")

    async def _submit_shown(self) -> None:
        # the form shows why not
        with contextlib.suppress(NotSubmittedError):
            await self.submit()

    def _unsubmittable(self) -> str | None:
        """Say all that keeps the job from being submitted, None where nothing does."""
        if self._submitting:
            return self.say("The job is being submitted.")
        if self._submitted == self.model.version and not self.code.names_anew:
            name = self.model.config.get("jobName")
            return self.say("The job {name} is submitted already. Give it another name first.", name=name)
        if self.model.text_error is not None and self.model.obstacle is not None:
            return self.say.of(self.model.obstacle)
        wrong = [f"{path}: {sentence}" for path, found in self._errors().items() for sentence in found]
        missing = [place(self.say, path) for path in self.model.needed]
        if missing:
            wrong.insert(0, self.say("Still needed: {fields}", fields=self.say(", ").join(missing)))
        return self.say("Not submitted: {error}", error="\n".join(wrong)) if wrong else None

    def _watch(self, name: str) -> JobMonitor:
        if self.monitor is not None:
            self.monitor.close()
        self.monitor = JobMonitor(name, client=self.client, locale=self.say.locale)
        self._monitors.children = (self.monitor,)
        return self.monitor

    def _refused(self, error: ApiError, version: int) -> str:
        """Show why the scheduler refused it, and return that."""
        told = error.message
        if isinstance(error, SubmitRefusedError):
            told += " " + self.say("Its code is in {folder} already.", folder=error.code_folder)
        words = self._tell_not_submitted(told)
        if version == self.model.version:
            path = _PLACE_OF_CODE.get(error.code)
            self._server_errors = error.errors or ([{"path": path, "message": error.message}] if path else [])
            self._show_errors()
        return words

    def _tell_not_submitted(self, reason: str) -> str:
        words = self.say("Not submitted: {error}", error=reason)
        self._tell(notice(words, "error"))
        return words

    def _changed(self) -> None:
        self._server_errors = []
        self._tell("")
        self._show_errors()
        self._show_free()
        self._checker.ask()

    def _question(self) -> tuple[int, Mapping[str, Any] | None]:
        return self.model.version, self.model.config if self.model.sound else None

    async def _help_with_image(self) -> None:
        known = await image_help(self.client)
        self.form.help_with_image(known)
        if not known.needed and ("image",) in self.model.needed:
            self.model.edit(("image",), LOCAL, self)

    def _errors(self) -> dict[str, list[str]]:
        """Return what is known to be wrong with the job, by path."""
        errors: dict[str, list[str]] = {}
        if self.model.text_error is None:
            for error in self.model.mistakes:
                errors.setdefault(error.path, []).append(self.say.of(error.message))
            for told in self._server_errors:
                errors.setdefault(told["path"], []).append(told["message"])
        return errors

    def _show_errors(self) -> None:
        errors = self._errors()
        count = sum(map(len, errors.values()))
        left = self.form.show_errors(errors)
        self.text.show_errors([(path, sentence) for path, found in errors.items() for sentence in found])
        lines = (
            [self.say("To put right before the job can be submitted: {count}", count=count)] if count else []
        )
        lines += [f"{path}: {sentence}" for path, sentence in left]
        self.problems.value = notice("\n".join(lines), "warning") if lines else ""
        show(self.problems, bool(lines))
        needed = self.say(", ").join(place(self.say, path) for path in self.model.needed)
        self.needed.value = html.escape(self.say("Still needed: {fields}", fields=needed)) if needed else ""
        if not self.model.sound:
            self.fit.value = ""
        self._show_submit_state()

    def _show_submit_state(self) -> None:
        self.submit_button.disabled = self._unsubmittable() is not None

    def _show_cluster(self, cluster: ClusterSummary) -> None:
        self._cluster = cluster
        self.form.offer(cluster.virtual_clusters, cluster.nodes)
        self._show_free()

    def _show_free(self) -> None:
        if not self._cluster.virtual_clusters:
            return
        config = self.model.config if isinstance(self.model.config, dict) else {}
        name = str(config.get("virtualCluster") or "default")
        line = free_line(self.say, name, self._cluster.virtual_clusters.get(name), self._cluster.nodes)
        self.free.value = f'<span class="pai-muted">{html.escape(line)}</span>'

    def _show_answer(self, answer: Validation) -> None:
        if answer["errors"]:
            self._server_errors = answer["errors"]
            self._show_errors()
            return
        if self._submitted == self.model.version:
            return
        say = self.say
        if answer["fits"] == "now":
            # where it would borrow, the reason says what that means
            sentence = " ".join(filter(None, (say("This job fits now."), answer["reason"])))
        elif answer["fits"] == "later":
            sentence = say("This job will wait: {reason}", reason=answer["reason"])
        else:
            sentence = say("This job cannot run here as it is. {reason}", reason=answer["reason"])
        if answer["borrows"] and (answer["fits"] != "now" or not answer["reason"]):
            sentence += " " + say("It would borrow what is idle, and may be stopped for those it belongs to.")
        start = [say.of(words) for words in start_in_words(answer)]
        warnings = [warning["message"] for warning in answer["warnings"]]
        self.fit.value = notice(" ".join((sentence, *start, *warnings)), _KIND_OF_FIT[answer["fits"]])

    def _show_trouble(self, sentence: str) -> None:
        text = self.say("Whether the job fits is not known: {error}. You can go on writing.", error=sentence)
        self.fit.value = notice(text, "warning")


def empty_job() -> dict[str, Any]:
    """Return the job that an empty form begins with."""
    role = {
        "name": "task_1",
        "taskNumber": 1,
        "cpuNumber": 1,
        "memoryMB": 1024,
        "gpuNumber": 0,
        "command": "",
    }
    return {"jobName": unique_name("job"), "image": "", "virtualCluster": "default", "taskRoles": [role]}
