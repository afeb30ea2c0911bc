"""Servers on a real Hub with a real scheduler, on the process engine with declared GPUs."""

from __future__ import annotations

import html
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.hub import Hub, wait_for, xsrf


@pytest.fixture(scope="module")
def hub(process_hub: Hub) -> Iterator[Hub]:
    yield process_hub
    process_hub.clear()


#: All that there are.
WAITING = {"gpus": 3, "gpu_type": "TITANX"}


def server_pid(hub: Hub, name: str) -> str:
    (job,) = hub.running_jobs(name)
    detail = hub.scheduler(name, "GET", f"user/{name}/jobs/{job['name']}").json()
    return str(detail["taskRoles"]["notebook"]["taskStatuses"][0]["containerId"])


def test_a_server_is_a_job_and_stopping_it_ends_the_job(hub: Hub) -> None:
    assert hub.start_server("alice", {"cpus": 2, "memory_mb": 1024, "gpus": 1, "gpu_type": "P100"}).is_success
    hub.wait_ready("alice")
    (job,) = hub.running_jobs("alice")
    config = hub.scheduler("alice", "GET", f"user/alice/jobs/{job['name']}/config").json()
    files = hub.api("alice", "GET", "../../user/alice/api/contents/tutorials").json()

    assert job["name"].startswith("notebook_")
    assert (job["state"], job["totalGpuNumber"]) == ("RUNNING", 1)
    assert config["gpuType"] == "P100"
    hub.stop_server("alice")
    assert hub.server("alice") == {}
    assert hub.running_jobs("alice") == []
    ended = hub.scheduler("alice", "GET", f"user/alice/jobs/{job['name']}").json()
    assert ended["jobStatus"]["state"] == "STOPPED"
    assert "01-hello-world.ipynb" in [file["name"] for file in files["content"]]


def test_a_server_that_must_wait_says_for_what_and_starts_when_it_can(hub: Hub) -> None:
    assert hub.start_server("bob", WAITING).is_success
    hub.wait_ready("bob")
    assert hub.start_server("carol", WAITING, server="big").status_code == 202

    events = hub.progress("carol", lambda event: "TITANX" in event["message"] and "progress" in event, "big")
    assert "3 × TITANX" in events[-1]["message"] or "3" in events[-1]["message"]
    (waiting,) = hub.running_jobs("carol")
    assert waiting["state"] == "WAITING"
    assert waiting["name"].startswith("notebook.big_")

    hub.stop_server("bob")
    hub.wait_ready("carol", "big")
    hub.stop_server("carol", "big")


def test_a_waiting_server_can_be_given_up(hub: Hub) -> None:
    assert hub.start_server("bob", WAITING).is_success
    hub.wait_ready("bob")
    assert hub.start_server("dave", WAITING).status_code == 202
    wait_for(lambda: hub.running_jobs("dave"), "dave's job")
    hub.stop_server("dave")
    assert hub.running_jobs("dave") == []
    hub.stop_server("bob")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"cpus": 0}, "The number of CPUs must be at least 1, not 0."),
        ({"image": "evil"}, "The image “evil” is not one of those that are offered: local/python."),
        ({"gpu": 1}, "There is no option “gpu”"),
        ({"virtual_cluster": "nowhere"}, "nowhere"),
        ({"gpus": 3, "gpu_type": "P100"}, "P100"),
    ],
)
def test_options_that_make_no_sense_are_refused_over_rest(
    hub: Hub, options: dict[str, object], sentence: str
) -> None:
    answer = hub.start_server("erin", options)
    assert answer.status_code in (400, 404), answer.text
    assert sentence in answer.json()["message"]
    assert hub.running_jobs("erin") == []


def test_the_form_shows_what_is_free_and_keeps_its_place_when_something_is_wrong(hub: Hub) -> None:
    with hub.browser("frank", language="zh-CN,zh;q=0.9") as browser:
        page = browser.get("/hub/spawn/frank")
        assert "P100（模拟）：1 块中 1 块空闲" in page.text
        refused = browser.post(
            "/hub/spawn/frank", params={"_xsrf": xsrf(browser)}, data={"cpus": "0", "memory_mb": "2048"}
        )
    assert refused.status_code == 400
    assert "CPU 数至少为 1，不能是 0。" in html.unescape(refused.text)
    assert 'name="memory_mb"' in refused.text


def watch(hub: Hub, name: str) -> tuple[threading.Thread, list[dict[str, Any]]]:
    """Follow a start in another thread until its stream ends, as an open page does."""
    told: list[dict[str, Any]] = []

    def hear(event: dict[str, Any]) -> bool:
        told.append(event)
        return False

    thread = threading.Thread(target=hub.progress, args=(name, hear))
    thread.start()
    wait_for(lambda: told, "the page to be told anything", hub.log)
    return thread, told


def test_a_start_that_is_cancelled_is_told_as_cancelled_and_never_as_ready(hub: Hub) -> None:
    assert hub.start_server("bob", WAITING).is_success
    hub.wait_ready("bob")
    assert hub.start_server("grace", WAITING).status_code == 202
    wait_for(lambda: hub.running_jobs("grace"), "grace's job")
    page, told = watch(hub, "grace")
    hub.stop_server("grace")
    page.join()

    assert not any("ready" in event for event in told), told
    assert told[-1].get("failed"), told
    assert hub.server("grace") == {}
    assert hub.running_jobs("grace") == []
    hub.stop_server("bob")


def test_servers_and_starts_outlive_ctrl_c_and_kill_9_and_a_start_is_cancelled_after_them(hub: Hub) -> None:
    assert hub.start_server("alice").is_success
    hub.wait_ready("alice")
    before = server_pid(hub, "alice")
    hub.stop()
    hub.start()
    is_found_again(hub, "alice", before)

    assert hub.start_server("bob", WAITING).is_success
    hub.wait_ready("bob")
    for name in ("carol", "dave"):
        assert hub.start_server(name, WAITING).status_code == 202
        wait_for(lambda name=name: hub.running_jobs(name), "the job")  # type: ignore[misc]
    (job,) = hub.running_jobs("carol")
    hub.kill()
    hub.start()
    is_found_again(hub, "alice", before)

    page, told = watch(hub, "dave")
    hub.stop_server("dave")
    page.join()
    assert not any("ready" in event for event in told), told
    assert hub.server("dave") == {}
    assert hub.running_jobs("dave") == []
    # and there is nothing left in the way of another
    assert hub.start_server("dave", {"cpus": 1}).is_success
    hub.wait_ready("dave")

    assert hub.server("carol")["pending"] == "spawn"
    events = hub.progress("carol", lambda event: "TITANX" in event["message"])
    assert any("going on with the start" in event["message"] for event in events)
    hub.wait_ready("bob")
    hub.stop_server("bob")
    assert hub.progress("carol", lambda event: "ready" in event or "failed" in event)[-1].get("ready")
    assert [running["name"] for running in hub.running_jobs("carol")] == [job["name"]]
    # the Hub makes the route when its check is over, a moment after the server is ready
    wait_for(
        lambda: hub.api("carol", "GET", "../../user/carol/api/status").status_code == 200, "carol's route"
    )

    hub.stop_server("alice")
    assert hub.running_jobs("alice") == []


def is_found_again(hub: Hub, name: str, before: str) -> None:
    """Check that a server is the one that it was, and reached."""
    hub.wait_ready(name)
    assert hub.api(name, "GET", f"../../user/{name}/api/status").status_code == 200
    assert server_pid(hub, name) == before
