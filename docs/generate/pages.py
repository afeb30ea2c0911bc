"""Fills the templates: a page's prose stands in its template, its facts come from the code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pai_scheduler.api.openapi import as_yaml

from . import (
    calls,
    cluster_file,
    command_lines,
    environment,
    exits,
    front_end,
    imports,
    job_fields,
    limits,
    metrics,
    scheduler_settings,
    sessions,
    stops,
)

DOCS = Path(__file__).parent.parent
_TEMPLATES = Path(__file__).parent / "templates"

Facts = Callable[[str], Mapping[str, Any]]


def pages() -> Mapping[str, str]:
    """Return every generated page: its path within docs/ and its text."""
    return {
        "users/job-json.md": _page("job-json.md", "en", job_fields.facts),
        "users/zh/job-json.md": _page("job-json.zh_CN.md", "zh_CN", job_fields.facts),
        "users/states-and-exit-codes.md": _page("states-and-exit-codes.md", "en", exits.facts),
        "users/zh/states-and-exit-codes.md": _page("states-and-exit-codes.zh_CN.md", "zh_CN", exits.facts),
        "users/environment.md": _page("environment.md", "en", environment.facts),
        "users/virtual-clusters.md": _page("virtual-clusters.md", "en", limits.facts),
        "contributors/imports.md": _page("imports.md", "en", imports.facts),
        "contributors/walks.md": _page("walks.md", "en", stops.facts),
        "administrators/monitoring.md": _page("monitoring.md", "en", metrics.facts),
        "administrators/cluster-file.md": _page("cluster-file.md", "en", cluster_file.facts),
        "administrators/scheduler-settings.md": _page(
            "scheduler-settings.md", "en", scheduler_settings.facts
        ),
        scheduler_settings.FILE: scheduler_settings.file(),
        "administrators/hub.md": _page("hub.md", "en", scheduler_settings.of_the_spawner),
        "administrators/sessions.md": _page("sessions.md", "en", sessions.facts),
        "users/openapi.yaml": _openapi(),
        "users/api.md": _page("api.md", "en", calls.facts),
        "../pai_labextension/ui/generate/answers.json": front_end.answers(),
        "users/cli.md": _page("cli.md", "en", command_lines.facts),
    }


def cell(text: object) -> str:
    """Write a text so that it stays within its cell of a Markdown table, and `<…>` is no HTML."""
    parts = str(text).replace("|", "\\|").replace("\n", " ").split("`")
    # every second part stands between backquotes, where < is what it is
    return "`".join(part if number % 2 else part.replace("<", "&lt;") for number, part in enumerate(parts))


def _openapi() -> str:
    note = "# Made by `make docs` from what the handlers and pai_scheduler/rest/ declare.\n"
    return note + as_yaml().decode()


def _page(template: str, locale: str, facts: Facts) -> str:
    # Markdown, not HTML: nothing is escaped but what would end a table's cell
    jinja = Environment(  # noqa: S701
        loader=FileSystemLoader(_TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    jinja.filters["cell"] = cell
    jinja.filters["number"] = "{:,}".format
    note = f"<!-- Made by `make docs` from docs/generate/templates/{template}: change that, not this. -->\n\n"
    return note + jinja.get_template(template).render(facts(locale))
