"""Source of the job editor: the schema in the reader's language, templates, images."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from importlib import resources
from typing import Any

from pai_labextension.callers import PersonHandler
from pai_labextension.models import JobEditorInfo, JobTemplate
from pai_scheduler.client.rest import Client
from pai_scheduler.i18n import Message, translate
from pai_scheduler.job.schema import job_schema

from ..images import ImageHelp, image_help
from ..messages import msg

# Jobs to begin with: the files in `templates/`, each with a name and a sentence about what it does.


#: The templates in their order: the file's name without its ending, a title, what the job does.
TEMPLATES: tuple[tuple[str, Message, Message], ...] = (
    (
        "single-gpu",
        msg("One GPU"),
        msg(
            "One task with one GPU. Put the command of your program in place of the one that prints its GPUs."
        ),
    ),
    (
        "jupyter",
        msg("Jupyter service"),
        msg(
            "JupyterLab in the image of your choice, on the task's http port: open it from the job's page; "
            "the log has its token."
        ),
    ),
    (
        "pytorch-ddp",
        msg("PyTorch, distributed (DDP)"),
        msg(
            "Two workers with one GPU each; launch.py tells PyTorch where they find each other. Put your "
            "program in place of train.py."
        ),
    ),
    (
        "tensorflow-ps-worker",
        msg("TensorFlow, parameter server"),
        msg(
            "A chief, a parameter server and two workers; launch.py tells them of each other by TF_CONFIG. "
            "The job ends when the chief has succeeded."
        ),
    ),
    (
        "horovod",
        msg("Horovod with MPI"),
        msg(
            "launch.py starts one process for each GPU of two workers with mpirun, from the first of them, "
            "by SSH between the tasks (in containers)."
        ),
    ),
    (
        "dask",
        msg("Dask cluster"),
        msg(
            "A Dask scheduler and two workers, which run until you stop the job. A notebook connects to the "
            "scheduler's port; the link http opens its dashboard."
        ),
    ),
    (
        "sweep",
        msg("Sweep: many tasks, each with its own value"),
        msg("Four tasks that choose a value by their index; one that fails does not end the others."),
    ),
)


def job_templates(locale: str) -> Iterator[JobTemplate]:
    """Return the templates in the reader's language."""
    for name, title, description in TEMPLATES:
        yield {
            "name": name,
            "title": title.in_locale(locale),
            "description": description.in_locale(locale),
            "config": read_template(name),
        }


def read_template(name: str) -> dict[str, Any]:
    """Read the job of a template."""
    file = resources.files(__package__) / "templates" / f"{name}.json"
    config: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return config


# The job's JSON Schema with its titles and descriptions in the reader's language.

_WORDS = ("title", "description")


def schema_in(locale: str) -> dict[str, Any]:
    """Return the schema in a language."""
    schema: dict[str, Any] = _translated(job_schema(), locale)
    return schema


def _translated(part: Any, locale: str) -> Any:
    if isinstance(part, list):
        return [_translated(item, locale) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        key: translate(value, locale)
        if key in _WORDS and isinstance(value, str)
        else _translated(value, locale)
        for key, value in part.items()
    }


# The answer, for whoever asks.


async def editor_info(client: Client, locale: str, *, asks: bool = True) -> JobEditorInfo:
    """Return what the job editor is made from; unless it `asks` the scheduler, nothing is known of images."""
    images = await image_help(client) if asks else ImageHelp()
    return {
        "jobSchema": schema_in(locale),
        "templates": await asyncio.to_thread(lambda: list(job_templates(locale))),
        "images": list(images.used),
        "imageNeeded": images.needed,
    }


class EditorInfoHandler(PersonHandler):
    """Answers with the schema, the templates, and what is known about images; its base says who asks."""

    _api_url: str

    async def answer(self) -> None:
        """Answer with `JobEditorInfo`."""
        locale = self.locale_asked
        async with Client(self._api_url, self.caller_token, locale=locale) as client:
            # (without a token the client would take that of this process)
            info = await editor_info(client, locale, asks=bool(self.caller_token))
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(info))
