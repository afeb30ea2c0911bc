"""What the notebook server tells the job editor."""

from __future__ import annotations

from http import HTTPStatus

import httpx

from tests.labextension.conftest import MakeServer, Scheduler


async def test_schema_and_templates_come_in_the_readers_language(browser: httpx.AsyncClient) -> None:
    english = (await browser.get("pai/job-editor", headers={"Accept-Language": "en"})).json()
    chinese = (await browser.get("pai/job-editor", headers={"Accept-Language": "zh-CN"})).json()
    assert english["jobSchema"]["properties"]["jobName"]["title"] == "Job name"
    assert chinese["jobSchema"]["properties"]["jobName"]["title"] == "作业名称"
    assert chinese["jobSchema"]["properties"]["jobName"]["pattern"] == "^[A-Za-z0-9._~-]+$"
    assert english["templates"][0]["title"] == "One GPU"
    assert chinese["templates"][0]["title"] == "单个 GPU"
    assert english["templates"][0]["config"] == chinese["templates"][0]["config"]


async def test_where_tasks_have_no_container_no_image_is_asked_for(
    browser: httpx.AsyncClient, scheduler: Scheduler
) -> None:
    scheduler.answers[""] = lambda handler: handler.write({"service": "pai", "engine": "process"})
    info = (await browser.get("pai/job-editor")).json()
    assert (info["imageNeeded"], info["images"]) == (True, [])


async def test_without_a_scheduler_one_can_still_write(make_jupyter: MakeServer) -> None:
    lonely = await make_jupyter("http://127.0.0.1:9/services/pai")
    info = (await lonely.get("pai/job-editor")).json()
    assert info["imageNeeded"] is True
    assert len(info["templates"]) == 7


async def test_nobody_is_told_without_a_login(browser: httpx.AsyncClient) -> None:
    answer = await browser.get("pai/job-editor", headers={"Authorization": "token wrong"})
    assert answer.status_code == HTTPStatus.FORBIDDEN
