"""Three machines behind a real Hub: a browser, a terminal, a port and SSH reach what runs elsewhere.

The Hub and the scheduler are on the first machine, the notebook server on the second, a job on the third.
Screenshots are kept in test-artifacts/e2e/swarm.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.hub import PASSWORD, REPOSITORY, Hub, wait_for
from tests.testbed.browser import CHROMIUM_FLAGS
from tests.testbed.machine import apt_install
from tests.testbed.swarm import Swarm

from .ssh_house import PORT, web_job
from .test_storage_in_a_server import run_cell

PATIENCE = 90_000
#: (the GPUs are simulated)
CLUSTER = """
nodes:
  - {name: node-a, gpus: {A100: 4}, rack: r1}
  - {name: node-b, gpus: {A100: 4}, rack: r1}
  - {name: node-c, gpus: {T4: 2}, rack: r2}
registries: ['*']
"""
PICTURES = REPOSITORY / "test-artifacts" / "e2e" / "swarm"


@pytest.fixture
def hub(three_nodes: Swarm, docker_host: str, notebook_image: str, tmp_path: Path) -> Iterator[Hub]:
    """Run a Hub on the manager; what is started goes to node-b."""
    three_nodes.load(docker_host, notebook_image, "node-b")
    three_nodes.give_key(tmp_path / "scheduler")
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    hub = Hub(
        tmp_path,
        *("--engine", "swarm", "--cluster", str(tmp_path / "cluster.yaml")),
        environment={"DOCKER_HOST": three_nodes.manager.host, "PAI_NOTEBOOK_IMAGE": notebook_image},
    )
    with three_nodes.without("node-a", "node-c"):
        hub.start()
        try:
            yield hub
        finally:
            hub.close()


@pytest.fixture
def page(chromium: str) -> Iterator[Page]:
    PICTURES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 1000}, locale="en-GB")
        page.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        yield page
        page.screenshot(path=PICTURES / "last.png")
        browser.close()


def node_of(hub: Hub, job: str, role: str) -> str:
    """Return where the only task of a job runs."""
    detail = hub.scheduler("alice", "GET", f"user/alice/jobs/{job}").json()
    return str(detail["taskRoles"][role]["taskStatuses"][0]["node"])


def test_a_notebook_on_another_machine_is_used_like_one_here(
    hub: Hub, page: Page, three_nodes: Swarm, debian_image: str, tmp_path: Path
) -> None:
    page.goto(hub.url)
    page.get_by_label("Username:").fill("alice")
    page.get_by_label("Password:").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("Memory (MB)", exact=True).fill("1024")
    # (the other two machines are paused, so that nobody can have anything there)
    expect(page.get_by_text(f"{os.cpu_count()} of {os.cpu_count()} free")).to_be_visible()
    page.get_by_text("Machines: 1 of 3 take servers").click()
    expect(page.get_by_role("row", name="node-b ready A100: 4/4")).to_be_visible()
    expect(page.get_by_role("row", name="node-c paused: nothing new starts there T4: 2/2")).to_be_visible()
    page.screenshot(path=PICTURES / "form.png", full_page=True)
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/user/alice/lab**")
    (server,) = hub.running_jobs("alice")
    assert node_of(hub, server["name"], "notebook") == "node-b"

    # a terminal in the page, which goes by SSH through the gateway on the first machine
    page.locator(".jp-LauncherCard", has_text="Terminal in a PAI task").click()
    expect(page.locator(".pai-Shell textarea")).to_be_focused()

    def typed() -> object:
        # (again, until there is a shell that reads it)
        page.keyboard.type("echo $PAI_JOB_NAME > typed\n")
        page.wait_for_timeout(1_000)
        return hub.api("alice", "GET", "../../user/alice/api/contents/typed").json().get("content")

    wait_for(lambda: typed() == f"{server['name']}\n", "what was typed", hub.log)
    page.screenshot(path=PICTURES / "terminal.png")

    # a job on a third machine: its port in the browser, SSH out of the notebook and from outside
    others = {"node-a": "PAUSED", "node-b": "PAUSED"}
    three_nodes.set("node-b", Availability="pause")
    three_nodes.set("node-c", Availability="active")
    wait_for(lambda: states(hub) == {**others, "node-c": "READY"}, "node-c alone to be ready")
    job = web_job("web", debian_image)
    job["taskRoles"][0]["gpuNumber"] = 1
    assert hub.scheduler("alice", "POST", "jobs", json=job).status_code == 202
    wait_for(lambda: state(hub, "web") == "RUNNING", "the job to run", hub.log)
    assert node_of(hub, "web", "worker") == "node-c"
    page.goto(f"{hub.url}/user/alice/pai/ports/alice/web/worker-0/{PORT}/")
    expect(page.get_by_role("link", name="who")).to_be_visible()
    assert page.evaluate("async () => (await fetch('who')).text()") == "alice's worker-0\n"
    cell = "import subprocess; print(subprocess.getoutput('pai ssh web worker-0 -- hostname'))"
    with ThreadPoolExecutor() as pool:  # (this thread has the browser's event loop)
        printed = pool.submit(asyncio.run, run_cell(hub, "alice", cell)).result()
    assert printed.endswith("worker-0\n")
    assert outside(hub, tmp_path) == "alice web\n"

    three_nodes.set("node-a", Availability="active")
    page.goto(f"{hub.url}/user/alice/lab")
    page.get_by_role("button", name="PAI: 1 running").click()
    page.get_by_role("button", name="Cluster").click()
    for figure in ("GPUs used 1 of 10", "GPUs free 5", "Machines that take jobs 2 of 3"):
        expect(page.locator(".pai-Figures > div", has_text=figure)).to_be_visible()
    machines = page.get_by_role("region", name="Machines").get_by_role("group")
    here, away, busy = (machines.filter(has_text=f"node-{letter}") for letter in "abc")
    expect(here).to_contain_text("ready")
    busy.locator("summary").click()
    expect(away).to_contain_text("paused: nothing new starts there")
    expect(busy).to_contain_text(re.compile("T4 \\(simulated\\)\\s*1 of 2 used"))
    expect(busy).to_contain_text("GPUs held by: alice~web")
    page.screenshot(path=PICTURES / "machines.png")


def states(hub: Hub) -> dict[str, str]:
    """Return the state of each node."""
    return {node["name"]: node["state"] for node in hub.scheduler("alice", "GET", "nodes").json()}


def state(hub: Hub, job: str) -> str:
    """Return the state of a job of alice's."""
    return str(hub.scheduler("alice", "GET", f"user/alice/jobs/{job}").json()["jobStatus"]["state"])


def outside(hub: Hub, folder: Path) -> str:
    """Log into the job with OpenSSH's client and the job's key; return what a command prints there."""
    apt_install({"ssh": "openssh-client"})
    gateway = hub.scheduler("alice", "GET", "").json()["ssh"]
    key, known = folder / "key", folder / "known_hosts"
    key.touch(0o600)
    key.write_text(hub.scheduler("alice", "GET", "user/alice/jobs/web/ssh/key").text)
    known.write_text(f"[127.0.0.1]:{gateway['port']} {gateway['hostKey']}\n")
    options = ("-F", "none", "-o", f"UserKnownHostsFile={known}", "-o", "BatchMode=yes", "-i", str(key))
    line = ("ssh", *options, "-p", str(gateway["port"]), "-l", "alice+web", "127.0.0.1")
    done = subprocess.run(
        (*line, "echo $PAI_USER_NAME $PAI_JOB_NAME"), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
