"""Jobs to begin with: the files in `templates/`, each with a name and a sentence about what it does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from typing import Any

from pai_labextension.models import JobTemplate
from pai_scheduler.i18n import Message

from ..messages import msg

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
            "JupyterLab in the image of your choice, on the task's http port: open it from the list of jobs; "
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
