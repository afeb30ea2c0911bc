"""The generated pages are what the generator makes of the code as it is, and forget nothing."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import pai_scheduler.client
from docs.generate import command_lines, environment
from docs.generate.pages import DOCS, cell, pages
from pai_scheduler.client.cli.program import COMMANDS
from pai_scheduler.client.rest import Client
from pai_scheduler.core.model import State, SubState
from pai_scheduler.job.exit_codes import exit_table
from pai_scheduler.job.schema import job_schema, resolve
from pai_scheduler.job.validation import validate
from tests.testbed.scheduler import RunningScheduler

current = cache(pages)


def test_each_page_is_what_the_code_says_now() -> None:
    now = current()
    assert len(now) > 10
    stale = [name for name in now if (DOCS / name).read_text(encoding="utf-8") != now[name]]
    assert stale == [], "run `make docs`"


def test_every_template_makes_a_page() -> None:
    made = "".join(current().values())
    for template in (DOCS / "generate" / "templates").glob("[!_]*.md"):
        assert f"docs/generate/templates/{template.name}:" in made


@pytest.mark.parametrize("page", ["users/job-json.md", "users/zh/job-json.md"])
def test_every_field_of_a_job_is_on_its_page(page: str) -> None:
    text = current()[page]
    for name in fields(job_schema()):
        assert f"| `{name}` |" in text


def test_the_full_example_has_every_field_that_is_not_deprecated_and_is_valid() -> None:
    full = json.loads((DOCS / "examples" / "full.json").read_text(encoding="utf-8"))
    used = set(names_in(full))
    assert {name for name, field in fields(job_schema()).items() if not field.get("deprecated")} <= used
    assert validate(full) == []


@pytest.mark.parametrize("page", ["users/states-and-exit-codes.md", "users/zh/states-and-exit-codes.md"])
def test_every_state_and_every_row_of_the_exit_table_is_on_its_page(page: str) -> None:
    text = current()[page]
    for state in (*State, *SubState):
        assert f"| `{state}` |" in text
    for row in exit_table().values():
        assert text.count(f"| {row.code} | {row.phrase} |") == 1


def test_every_command_of_pai_is_on_its_page() -> None:
    shown = [command.name for command in command_lines.facts("en")["commands"]]
    assert sorted(shown) == sorted(COMMANDS)


def test_every_public_name_is_on_its_page_and_has_a_docstring() -> None:
    names = pai_scheduler.client.__all__
    page = (DOCS / "users" / "python.md").read_text(encoding="utf-8")
    assert [name for name in names if f"`{name}`" not in page] == []
    assert [name for name in names if not inspect.getdoc(getattr(pai_scheduler.client, name))] == []


def test_a_cell_of_a_table_stays_a_cell() -> None:
    assert cell("a|b\nc <user>, `<role>`") == "a\\|b c &lt;user>, `<role>`"


async def test_a_real_task_gets_the_variables_on_the_page_and_no_others(
    documented: RunningScheduler, alice: Client, tmp_path: Path
) -> None:
    documented.put("alice/train/worker.py")
    config = json.loads(json.dumps(environment.EXAMPLE))
    file = tmp_path / "env"
    for role in config["taskRoles"]:
        role["command"] = "true"
        role["memoryMB"] = 100
    config["jobName"] = "documented-environment"
    # the second worker, as on the page; the launcher is there for whom it is named
    command = f'test "$PAI_TASK_INDEX" = 0 || {{ test -f "$PAI_LAUNCH" && env -0 > {file}; }}'
    config["taskRoles"][1]["command"] = command
    await alice.submit(config)
    async for event in alice.events("alice", "documented-environment"):
        if event["type"] == "ended":
            break
    variables = dict(line.split("=", 1) for line in file.read_text().split("\0") if line)
    explained = {
        actual
        for group in environment.MEANINGS.values()
        for name in group
        for actual in environment.names_of(name)
    }
    ours = {name for name in variables if "PAI_" in name or name in explained}
    # by which the engine finds the processes again; said beneath the tables
    assert ours - explained == {"PAI_PROCESS_ENGINE_TASK"}
    assert "`PAI_PROCESS_ENGINE_TASK`" in current()["users/environment.md"]
    for group in environment.MEANINGS.values():
        for name in group:
            # of the names that a placeholder may stand for, some are no task's: only worker has a grpc port
            assert variables.keys() & set(environment.names_of(name)), name
    assert variables["PAI_TASK_ROLE_LIST"] == "ps,worker"


def fields(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return every field there is, by its name."""
    found: dict[str, Mapping[str, Any]] = {}
    for part in (schema, schema["properties"]["extras"], *schema["$defs"].values()):
        found |= {name: resolve(field) for name, field in part.get("properties", {}).items()}
    return found


def names_in(value: Any) -> Iterator[str]:
    """Return the names of all objects in a JSON value."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from names_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from names_in(item)
