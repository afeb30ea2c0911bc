"""JobForm: write a job (fill in a form, write JSON, import a file), see whether it fits, submit it."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import AsyncGenerator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import ipywidgets
import msgspec
import traitlets
from IPython.display import display

from pai_labextension.callers import RefusedError
from pai_labextension.messages import msg
from pai_labextension.runs.code import CodeRefusedError, CodeSubmitter, SubmitRequest
from pai_scheduler.client.blocking import start
from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.client.storage.client import FilesClient, FilesError
from pai_scheduler.client.storage.code import CodeError, read_settings, submit_with_code
from pai_scheduler.client.storage.transfer import LocalFileError, TransferProgress
from pai_scheduler.job.json_text import JsonTextError, loads_jsonc
from pai_scheduler.job.validation import validate

from .base import ConsoleWidget
from .channel import LocalRoute, answered_json
from .job_monitor import JobMonitor

_UNIQUE_SUFFIX = re.compile(r"_[0-9a-f]{8}$")


class NotSubmittedError(RuntimeError):
    """A form's job was not submitted, or nobody knows: what is missing or wrong, or why it was refused."""


class JobForm(ConsoleWidget):
    """A form for one job, and its JSON beside it.

    `config`: the job to begin with, as an object or as text with comments; None: an empty one.
    `client`: how to reach the scheduler; None: as the notebook's environment says.
    `locale`: "en", "zh_CN" or None for the person's own (see `locales.default_locale`).
    `code`: the folder whose code goes along; None: the present one, if its `.pai/settings.json` says so.
    """

    #: The job as it is written, with its comments.
    text = traitlets.Unicode().tag(sync=True)
    #: The job submitted last: `username`, `name`, and the `text` that it was; empty: none was.
    _submitted = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        config: Mapping[str, Any] | str | None = None,
        client: Client | None = None,
        locale: str | None = None,
        *,
        code: Path | str | None = None,
    ) -> None:
        self._monitor: JobMonitor | None = None
        folder = Path.cwd() if code is None else Path(code)
        self._code = folder if code is not None or _goes_along(folder) else None
        options = {"isNew": config is None, "hasCode": self._code is not None}
        given = empty_job() if config is None else config
        text = given.removeprefix("\ufeff") if isinstance(given, str) else text_of(given)
        super().__init__("submit", client, locale, options, text=text)

    @property
    def job(self) -> dict[str, Any]:
        """The job as it is now, which may be set: form and text show it then.

        Reading it raises ValueError where the text is no job. What is read is a copy: change it, and set it.
        """
        try:
            job = loads_jsonc(self.text)
        except JsonTextError as error:
            words = msg(
                "The text does not parse at present (line {line}, column {column}): {error}",
                line=error.line,
                column=error.column,
                error=error.message,
            )
            raise ValueError(self._say(words)) from error
        if not isinstance(job, dict):
            words = msg("A job is a JSON object: the text has to begin with {brace}.", brace="{")
            raise ValueError(self._say(words))
        return job

    @job.setter
    def job(self, job: Mapping[str, Any]) -> None:
        self.text = text_of(job)

    @property
    def monitor(self) -> JobMonitor | None:
        """Return the monitor of the job submitted last, by code or with the button; None: none was."""
        name = self._submitted.get("name")
        if name is not None and (self._monitor is None or self._monitor.name != name):
            client = Client(self._url, self._token)
            self._monitor = JobMonitor(name, self._submitted["username"], client, self.locale)
        return self._monitor

    async def submit(self) -> JobMonitor:
        """Submit as the button does, the code first; return the job's monitor. The form shows the job, too.

        Raises `NotSubmittedError` with what is missing or wrong, or where nobody knows whether it arrived.
        """
        if (obstacle := self._obstacle()) is not None:
            raise NotSubmittedError(obstacle)
        text = self.text
        bar = ipywidgets.IntProgress(description=self._say(msg("Code"))) if self._code else None
        if bar is not None:
            display(bar)  # type: ignore[no-untyped-call]
        try:
            work = self._ask(lambda client: self._deliver(client, bar))
            name, username = await asyncio.wrap_future(start(work))
        except ApiError as error:
            found = [f"{one['path']}: {one['message']}" for one in error.errors or ()]
            raise NotSubmittedError(self._not_submitted("\n".join([error.message, *found]))) from error
        except (CodeError, LocalFileError) as error:
            raise NotSubmittedError(self._not_submitted(self._say(error.message))) from error
        except FilesError as error:
            raise NotSubmittedError(self._not_submitted(error.in_locale(self.locale))) from error
        except UnreachableError as error:
            words = msg(
                "It is not known whether the job arrived: {error}. Submit it again: "
                "a job of the same name never runs twice.",
                error=error,
            )
            raise NotSubmittedError(self._say(words)) from error
        finally:
            if bar is not None:
                bar.close()
        self._submitted = {"username": username, "name": name, "text": text}
        monitor = self.monitor
        assert monitor is not None  # noqa: S101 - a job was submitted
        return monitor

    def close(self) -> None:
        """Stop answering the browser, and remove the widget and its monitor; the job runs on."""
        if (monitor := getattr(self, "_monitor", None)) is not None:
            monitor.close()
        super().close()

    def __repr__(self) -> str:
        try:
            return f"JobForm(jobName={self.job.get('jobName')!r})"
        except ValueError:
            return "JobForm()"

    def as_text(self) -> str:
        """Return the job as it is written, and what is missing or wrong."""
        return "\n".join((self.text.rstrip(), *self._mistakes()))

    def _mistakes(self) -> list[str]:
        try:
            return [f"{error.path}: {self._say(error.message)}" for error in validate(self.job)]
        except ValueError as error:
            return [str(error)]

    def _obstacle(self) -> str | None:
        """Say all that keeps the job from being submitted, None where nothing does."""
        if self._submitted.get("text") == self.text and not (self._code and _is_named_anew(self._code)):
            name = self._submitted["name"]
            return self._say(
                msg("The job {name} is submitted already. Give it another name first.", name=name)
            )
        wrong = self._mistakes()
        return self._not_submitted("\n".join(wrong)) if wrong else None

    def _not_submitted(self, reason: str) -> str:
        return self._say(msg("Not submitted: {error}", error=reason))

    async def _deliver(self, client: Client, bar: ipywidgets.IntProgress | None) -> tuple[str, str]:
        username = (await client.whoami())["username"]
        if self._code is None:
            return await client.submit(self.job), username
        folder = self._code

        def tell(progress: TransferProgress) -> None:
            if bar is not None:
                bar.max, bar.value = max(1, progress.bytes_total), progress.bytes_done

        async def send(files: FilesClient) -> str:
            settings = replace(await asyncio.to_thread(read_settings, folder), enabled=True)
            return await submit_with_code(client, files, self.job, folder, settings, tell)

        return await self._ask_storage(send), username

    def _routes(self) -> dict[tuple[str, str], LocalRoute]:
        """Return also how the browser has the form's own folder go along, and no other."""
        if self._code is None:
            return super()._routes()
        submitter = CodeSubmitter(self._url, self._token, self._code)

        def plan(body: Any, locale: str) -> AsyncGenerator[bytes, None]:
            return _refusing(answered_json(submitter.plan(_request(body), locale)))

        async def lines(body: Any, locale: str) -> AsyncGenerator[bytes, None]:
            try:
                async for line in submitter.submit(_request(body), locale):
                    yield json.dumps(line).encode() + b"\n"
            except CodeRefusedError as error:
                yield json.dumps({"error": {"message": str(error)}}).encode() + b"\n"

        return {**super()._routes(), ("POST", "code-plan"): plan, ("POST", "submit-with-code"): lines}


def _request(body: Any) -> SubmitRequest:
    try:
        return msgspec.convert({**body, "path": ""}, SubmitRequest)
    except (TypeError, msgspec.ValidationError) as error:
        raise RefusedError(400, f"The request is wrong: {error}") from None


async def _refusing(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    try:
        async for piece in pieces:
            yield piece
    except CodeRefusedError as error:
        raise RefusedError(422, str(error)) from error


def _goes_along(folder: Path) -> bool:
    try:
        return read_settings(folder).enabled
    except CodeError:
        return False


def _is_named_anew(folder: Path) -> bool:
    try:
        return read_settings(folder).generate_name
    except CodeError:
        return False


def text_of(config: Mapping[str, Any]) -> str:
    """Write a job as a person would."""
    return json.dumps(config, indent=2, ensure_ascii=False)


def unique_name(name: Any) -> str:
    """Return the name with eight random characters behind it, in place of those it has had so far."""
    return f"{_UNIQUE_SUFFIX.sub('', str(name)) or 'job'}_{secrets.token_hex(4)}"


def empty_job() -> dict[str, Any]:
    """Return the job that an empty form begins with."""
    role = {
        "name": "main",
        "taskNumber": 1,
        "cpuNumber": 1,
        "memoryMB": 1024,
        "gpuNumber": 0,
        "command": "",
    }
    return {"jobName": unique_name("job"), "image": "", "virtualCluster": "default", "taskRoles": [role]}
