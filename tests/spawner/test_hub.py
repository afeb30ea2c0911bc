"""Servers on a real Hub with a real scheduler, on the process engine with declared GPUs."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub import Hub, open_hub, wait_for, xsrf


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with open_hub(tmp_path_factory.mktemp("hub")) as hub:
        yield hub


@pytest.fixture
def own_hub(tmp_path: Path) -> Iterator[Hub]:
    with open_hub(tmp_path) as hub:
        yield hub


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
    assert hub.start_server("bob", {"gpus": 3, "gpu_type": "TITANX"}).is_success
    hub.wait_ready("bob")
    assert hub.start_server("carol", {"gpus": 3, "gpu_type": "TITANX"}, server="big").status_code == 202

    events = hub.progress("carol", lambda event: "TITANX" in event["message"] and "progress" in event, "big")
    assert "3 × TITANX" in events[-1]["message"] or "3" in events[-1]["message"]
    (waiting,) = hub.running_jobs("carol")
    assert waiting["state"] == "WAITING"
    assert waiting["name"].startswith("notebook.big_")

    hub.stop_server("bob")
    hub.wait_ready("carol", "big")
    hub.stop_server("carol", "big")


def test_a_waiting_server_can_be_given_up(hub: Hub) -> None:
    assert hub.start_server("bob", {"gpus": 3, "gpu_type": "TITANX"}).is_success
    hub.wait_ready("bob")
    assert hub.start_server("dave", {"gpus": 3, "gpu_type": "TITANX"}).status_code == 202
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


def test_a_server_is_found_again_after_ctrl_c_and_after_kill_9(own_hub: Hub) -> None:
    hub = own_hub
    assert hub.start_server("alice").is_success
    hub.wait_ready("alice")
    before = server_pid(hub, "alice")
    for end in (hub.stop, hub.kill):
        end()
        hub.start()
        hub.wait_ready("alice")
        assert hub.api("alice", "GET", "../../user/alice/api/status").status_code == 200
        assert server_pid(hub, "alice") == before
    hub.stop_server("alice")
    assert hub.running_jobs("alice") == []


def test_a_start_outlives_a_killed_hub(own_hub: Hub) -> None:
    hub = own_hub
    assert hub.start_server("bob", {"gpus": 3, "gpu_type": "TITANX"}).is_success
    hub.wait_ready("bob")
    assert hub.start_server("carol", {"gpus": 3, "gpu_type": "TITANX"}).status_code == 202
    wait_for(lambda: hub.running_jobs("carol"), "carol's job")
    (job,) = hub.running_jobs("carol")

    hub.kill()
    hub.start()

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
