"""The front end in a real JupyterLab, seen through a real browser, in both languages."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import expect

from pai_scheduler.testing.ports import free_port
from tests.labextension.conftest import ARTEFACTS, OWN_TOKEN, choose_in_menu, job_rows
from tests.testbed.fixtures import provide
from tests.testbed.lab import LAB_TOKEN, OWN_SERVER, RunningLab

#: Whether each line of an element's text is what one sees there, from its first to its last letter.
NOTHING_COVERS = """element => {
  const range = document.createRange();
  range.selectNodeContents(element);
  return [...range.getClientRects()].every(({ left, right, top, bottom }) =>
    [left + 1, (left + right) / 2, right - 1].every(x =>
      element.contains(document.elementFromPoint(x, (top + bottom) / 2))
    )
  );
}"""


@pytest.fixture(scope="module")
def played_port() -> int:
    """Have JupyterLab find the played scheduler of each test at one port."""
    return free_port()


@pytest.fixture(scope="module")
def lab_server(lab_ports, played_port, tmp_path_factory) -> Iterator[RunningLab]:
    """Run a JupyterLab that asks a played scheduler."""
    environ = {"PAI_API_URL": f"http://127.0.0.1:{played_port}/services/pai", "PAI_TOKEN": OWN_TOKEN}
    running = provide(lambda: RunningLab(tmp_path_factory.mktemp("lab"), lab_ports[1], environ))
    yield running
    running.close()


@pytest.fixture
def jobs(scheduler) -> list[dict[str, Any]]:
    """The jobs of the person, as the scheduler lists them; a test changes them."""
    listed = [
        job("resnet-big", "WAITING", 4, 1_763_690_000_000),
        job("couplet", "WAITING", 2, 1_763_680_000_000),
        job("hello-world", "RUNNING", 1, 1_763_670_000_000),
        job(OWN_SERVER, "RUNNING", 1, 1_763_665_000_000),
        job("cifar10", "SUCCEEDED", 1, 1_763_660_000_000, 0),
        job("oom", "FAILED", 0, 1_763_650_000_000, 137),
    ]
    scheduler.answers["user"] = say(
        {
            "username": "alice",
            "email": "",
            "grouplist": [],
            "extension": {},
            "admin": False,
            "virtualCluster": ["default"],
        }
    )
    scheduler.answers["jobs"] = lambda handler: handler.write(json.dumps(listed))
    reasons = {
        "couplet": "waiting for 2 × P100: 1 is free on node-a; first in the queue",
        "resnet-big": "waiting for 4 × P100; second in the queue, behind alice~couplet",
    }
    for name, reason in reasons.items():
        scheduler.answers[f"user/alice/jobs/{name}"] = say(
            {"name": name, "jobStatus": waiting_status(reason), "taskRoles": {}}
        )
    return listed


def waiting_status(reason: str) -> dict[str, Any]:
    """Return the state of a job that waits; of what is not known yet there is nothing."""
    later = (
        "completedTime",
        "appLaunchedTime",
        "appExitCode",
        "appExitSpec",
        "startsWithin",
        "latestEndTime",
        "endingUntil",
    )
    return {
        **dict.fromkeys(later),
        "username": "alice",
        "virtualCluster": "default",
        "state": "WAITING",
        "subState": "QUEUED",
        "createdTime": 1_763_680_000_000,
        "appExitDiagnostics": "",
        "appExitMessages": {"container": None, "runtime": None, "launcher": None},
        "waitingReason": reason,
        "neverFits": False,
        "priority": 50,
        "queuePlace": 1,
        "dependencies": [],
        "dependents": [],
        "dependentCount": 0,
    }


def say(answer: dict[str, Any]) -> Callable[[Any], None]:
    return lambda handler: handler.write(answer)


def job(name: str, state: str, gpus: int, created: int, exit_code: int | None = None) -> dict[str, Any]:
    return {
        "name": name,
        "username": "alice",
        "state": state,
        "subState": "",
        "executionType": "START",
        "retries": 0,
        "retryDetails": {"user": 0, "platform": 0, "resource": 0},
        "createdTime": created,
        "completedTime": None,
        "appExitCode": exit_code,
        "virtualCluster": "default",
        "totalGpuNumber": gpus,
        "totalTaskNumber": 1,
        "totalTaskRoleNumber": 1,
        "priority": 50,
        "queuePlace": None,
        "startsWithin": None,
    }


async def test_my_jobs_are_counted_in_the_status_bar_listed_and_stopped(jobs, page, scheduler):
    status = page.locator("#jp-bottom-panel").get_by_role("button", name="PAI: 1 running · 2 waiting")
    await expect(status).to_have_attribute(
        "title", "“couplet”: waiting for 2 × P100: 1 is free on node-a; first in the queue"
    )
    await status.focus()
    await page.keyboard.press("Enter")
    rows = job_rows(page)
    await expect(rows).to_have_count(len(jobs))
    await expect(rows.filter(has_text="resnet-big")).to_contain_text("second in the queue")
    await expect(rows.filter(has_text="oom")).to_contain_text("137")
    await expect(rows.filter(has_text=OWN_SERVER)).to_contain_text("this notebook server")
    await expect(rows.filter(has_text="oom").locator("time")).to_have_attribute("title", re.compile("Japan"))
    await rows.filter(has_text="oom").click(button="right")
    await expect(page.get_by_role("menuitem", name="Delete …")).to_be_visible()
    await expect(page.get_by_role("menuitem", name="Stop …")).to_have_count(0)
    await page.keyboard.press("Escape")

    await choose_in_menu(page, "hello-world", "Stop …")
    await page.get_by_role("dialog").get_by_role("button", name="Keep it").click()
    await choose_in_menu(page, "hello-world", "Stop …")
    jobs[2]["state"] = "STOPPED"
    await page.get_by_role("dialog").get_by_role("button", name="Stop the job").click()
    await expect(rows.filter(has_text="hello-world")).to_contain_text("Stopped")
    await expect(page.get_by_role("button", name="PAI: 2 waiting")).to_be_visible()
    changes = [(asked.method, asked.uri, asked.body) for asked in scheduler.asked if asked.method != "GET"]
    path = "/services/pai/api/v1/user/alice/jobs/hello-world/executionType"
    assert changes == [("PUT", path, b'{"value":"STOP"}')]


@pytest.mark.usefixtures("jobs")
async def test_why_a_job_waits_and_its_menu_are_seen_at_any_width_of_the_page(page):
    await page.locator(".jp-SideBar.jp-mod-right .lm-TabBar-tab").first.click()
    await expect(page.locator("#jp-right-stack")).to_be_visible()
    status = page.get_by_role("button", name="PAI: 1 running · 2 waiting")
    rows = job_rows(page)
    for width in (1900, 1440, 1280, 1024, 600):
        await page.set_viewport_size({"width": width, "height": 900})
        await status.click()
        await expect(rows.filter(has_text="second in the queue")).to_have_count(1)
        menu = page.get_by_role("button", name="What can be done with “resnet-big”")
        await expect(menu).to_be_in_viewport(ratio=1)
        # (a row has one line for it: the whole is there where the pointer rests, and on the job's page)
        reason = rows.get_by_title("second in the queue")
        for text in (reason.get_by_text("waiting for 4 × P100"), rows.get_by_text(OWN_SERVER)):
            await expect(text).to_be_in_viewport()
        state = reason.get_by_text("Waiting", exact=True)
        await expect(state).to_be_in_viewport(ratio=1)
        assert await state.evaluate(NOTHING_COVERS), width
        await page.screenshot(path=ARTEFACTS / f"jobs-{width}.png")
    await page.reload()
    await expect(status).to_be_in_viewport(ratio=1)


@pytest.mark.usefixtures("jobs")
async def test_new_pai_job_opens_the_editor_from_the_palette(page):
    await expect(page.locator(".jp-LauncherCard", has_text="New PAI job")).to_be_visible()
    await page.keyboard.press("Control+Shift+C")
    await page.locator(".lm-CommandPalette-item", has_text="New PAI job").click()
    await expect(page.locator(".pai-JobEditor").get_by_role("button", name="Submit job")).to_be_visible()


async def test_nothing_asks_about_news_unless_the_person_has_said_so(lab):
    async with httpx.AsyncClient(trust_env=False) as client:
        setting = "lab/api/settings/@jupyterlab%2Fapputils-extension:notification"
        answer = await client.get(lab.replace("lab?", f"{setting}?"))
    assert answer.json()["schema"]["properties"]["fetchNews"]["default"] == "false"


@pytest.fixture(params=["chosen", "bash"])
def profile_without_pai(request, tmp_path, monkeypatch) -> Path:
    """Have a shell that, as a login shell, sets PATH as Debian's /etc/profile does; notes what it finds.

    It is the one that the environment names, or where it names none the bash that there is.
    """
    programs = tmp_path / "programs"
    programs.mkdir()
    shell, noted = programs / "bash", tmp_path / "noted"
    shell.write_text(
        "#!/bin/sh\n"
        'case "$*" in -l | --login) PATH=/usr/bin:/bin ;; esac\n'
        f'command -v found-by-path >"{noted}.new"; mv "{noted}.new" "{noted}"\n'
        "exec sleep 600\n"
    )
    program = programs / "found-by-path"
    program.write_text("#!/bin/sh\n")
    for file in (shell, program):
        file.chmod(0o755)
    if request.param == "chosen":
        monkeypatch.setenv("SHELL", str(shell.rename(tmp_path / "shell")))
    else:
        monkeypatch.delenv("SHELL", raising=False)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return noted


@pytest.fixture
def own_lab(profile_without_pai: Path, tmp_path: Path) -> Iterator[RunningLab]:
    """Run a JupyterLab with this shell."""
    del profile_without_pai  # it is in the environment
    running = RunningLab(tmp_path, free_port(), {})
    yield running
    running.close()


async def test_a_terminal_finds_the_programs_that_the_server_finds(profile_without_pai, own_lab):
    api = own_lab.address.partition("/lab")[0] + "/api/terminals"
    async with httpx.AsyncClient(trust_env=False, headers={"Authorization": f"token {LAB_TOKEN}"}) as client:
        (await client.post(api)).raise_for_status()
    for _ in range(100):
        if profile_without_pai.exists():
            break
        await asyncio.sleep(0.1)
    assert profile_without_pai.read_text().endswith("/programs/found-by-path\n")


@pytest.mark.parametrize("locale", ["zh_CN"])
@pytest.mark.usefixtures("jobs")
async def test_all_of_it_speaks_chinese_when_jupyterlab_does(page, scheduler):
    await expect(page.locator(".jp-LauncherCard", has_text="新建 PAI 作业")).to_be_visible()
    await page.get_by_role("button", name="PAI：1 个运行中 · 2 个等待中").click()
    await expect(job_rows(page).filter(has_text="hello-world")).to_contain_text("运行中")
    assert scheduler.asked[-1].headers["Accept-Language"] == "zh-CN"
