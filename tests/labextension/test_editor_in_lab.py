"""The job editor in a real JupyterLab: a job is written as a form and as JSON, checked and submitted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from pai_scheduler.client.rest import Client
from pai_scheduler.job.json_text import loads_jsonc
from tests.labextension.conftest import ARTEFACTS, serious
from tests.testbed.scheduler import RunningScheduler, hello_job

pytestmark = pytest.mark.real_scheduler

#: A comment that editing by the form has to leave alone.
COMMENTED = """{
  // greets once a day
  "jobName": "greeter",
  "image": "local/any",
  "taskRoles": [{"name": "main", "command": "echo hello"}],
  "extras": {"nodes": ["node-a"],}, // as VS Code writes it
}
"""


@pytest.fixture
def lab_folder(home: Path) -> Path:
    """What the file browser shows, with a job file in it."""
    (home / "greeter.pai.json").write_text(COMMENTED)
    return home


async def test_a_job_of_two_roles_is_written_checked_and_submitted(
    page: Page, scheduler: RunningScheduler
) -> None:
    async with Client(scheduler.url, "token-of-alice") as alice:
        await alice.submit(hello_job("taken"))
    await page.locator(".jp-LauncherCard", has_text="New PAI job").click()
    editor = page.locator(".pai-JobEditor")
    submit = editor.get_by_role("region", name="Submit")
    code = editor.get_by_role("textbox", name="Job as JSON")
    await expect(submit).to_contain_text("Still needed:Command of main")
    await expect(editor.get_by_text("Not used here: tasks run as processes")).to_be_visible()
    await page.screenshot(path=ARTEFACTS / "editor-new.png")

    # all that is known to be wrong is in one list, before anything that is required is there
    await editor.get_by_label("GPUs").fill("9")
    problems = submit.get_by_role("list", name="Problems").get_by_role("listitem")
    await expect(problems).to_have_text(
        ["Still needed:Command of main", re.compile("Never fits at present: .*9")]
    )
    await code.get_by_text('"command"').dblclick()
    await page.keyboard.type("comand")
    await expect(problems).to_have_text(
        ["Still needed:Command of main", re.compile("comand of main.*command"), re.compile("Never fits")]
    )
    assert await serious(page, ".pai-JobEditor") == []
    await page.screenshot(path=ARTEFACTS / "editor-problems.png")
    await submit.get_by_role("button", name="comand of main").click()
    await expect(code).to_be_focused()
    await code.get_by_text('"comand"').dblclick()
    await page.keyboard.type("command")
    await editor.get_by_label("GPUs").fill("0")
    await expect(problems).to_have_text(["Still needed:Command of main"])

    # what Submit waits for is where it leads to
    await submit.get_by_role("button", name="Submit job").click()
    await expect(editor.get_by_label("Command")).to_be_focused()
    await page.keyboard.type("echo I serve; sleep 3600")
    await expect(submit).to_contain_text("This job starts now.")
    await expect(code).to_contain_text('"command": "echo I serve; sleep 3600"')

    await editor.get_by_label("Job name").fill("taken")
    await expect(editor.get_by_role("alert")).to_contain_text("You have a job of this name already")
    await editor.get_by_role("button", name="Make unique").click()
    await expect(submit).to_contain_text("This job starts now.")
    await editor.get_by_label("Job name").fill("two-roles")

    await editor.get_by_role("button", name="Copy task role 1").click()
    second = editor.get_by_role("group", name="Task role 2")
    await second.get_by_label("Name").fill("worker")
    await second.get_by_label("Tasks", exact=True).fill("2")
    await second.get_by_label("GPUs").fill("5")
    await expect(submit).to_contain_text("GPUs10 (8 of 8 free)")
    await expect(submit).to_contain_text("cannot run here as it is")
    await second.get_by_label("GPUs").fill("1")
    await second.get_by_label("Memory (MB)", exact=True).fill("7")
    mistake = second.get_by_role("alert")
    await expect(mistake).to_have_count(1)
    await expect(mistake).to_contain_text("100")
    await page.screenshot(path=ARTEFACTS / "editor-mistake.png")
    await expect(editor.locator(".cm-lint-marker-error")).to_have_count(1)
    await submit.get_by_role("button", name="Memory (MB) of worker").click()
    await expect(second.get_by_label("Memory (MB)", exact=True)).to_be_focused()
    await page.keyboard.press("Control+A")
    await page.keyboard.type("512")
    await expect(submit).to_contain_text("This job starts now.")

    # how commands find its port is said with the names of this job
    await second.get_by_text("More: ports").click()
    await expect(second).to_contain_text("$PAI_HOST_IP_worker_0:$PAI_worker_0_http_PORT")
    await second.get_by_role("button", name="Add a port range").click()
    await second.get_by_label("Label").fill("tensor.board")
    await expect(second).to_contain_text("$PAI_CONTAINER_HOST_tensor_board_PORT_LIST")

    # JSON that is none is said where it is, and the form comes back with it
    await code.click()
    await page.keyboard.press("Control+End")
    await page.keyboard.type("x")
    await expect(editor.get_by_text("The form follows as soon as the JSON is right")).to_be_visible()
    await editor.get_by_role("button", name="Go back to the text that was right last").click()
    await expect(second.get_by_label("Name")).to_have_value("worker")
    await editor.get_by_role("button", name="Move task role 2 up").click()
    await expect(second.get_by_label("Name")).to_have_value("main")
    assert await serious(page, ".pai-JobEditor") == []

    # what was typed outlives a reload
    await expect(page.locator(".lm-TabBar-tab", has_text="two-roles")).to_have_class(
        re.compile("jp-mod-dirty")
    )
    await page.wait_for_timeout(1500)  # JupyterLab writes down what is open a second later
    await page.reload()
    await expect(second.get_by_label("Name")).to_have_value("main")
    await page.set_viewport_size({"width": 600, "height": 800})
    await editor.get_by_role("tab", name="JSON").click()
    await expect(code).to_contain_text("two-roles")
    await page.screenshot(path=ARTEFACTS / "editor-narrow.png")
    await page.set_viewport_size({"width": 1280, "height": 800})
    await expect(code).to_be_visible()
    form, pane = editor.locator(".pai-JobForm"), editor.locator(".pai-JobCode")
    sizes = [await side.bounding_box() for side in (form, pane)]
    assert all(size and size["width"] > 250 for size in sizes), f"both sides have room again: {sizes}"

    await submit.get_by_role("button", name="Submit job").click()
    await expect(page.get_by_role("heading", name="two-roles")).to_be_visible()
    async with Client(scheduler.url, "token-of-alice") as alice:
        config = await alice.config("alice", "two-roles")
    assert [(role["name"], role["taskNumber"]) for role in config["taskRoles"]] == [
        ("worker", 2),
        ("main", 1),
    ]


async def test_a_job_file_opens_in_the_editor_and_keeps_its_comments(lab_folder: Path, page: Page) -> None:
    file = lab_folder / "greeter.pai.json"
    await page.locator(".jp-DirListing-item", has_text=file.name).dblclick()
    editor = page.locator(".pai-JobEditor")
    await expect(editor.get_by_role("textbox", name="Job as JSON")).to_contain_text("greets once a day")
    await editor.get_by_label("Job name").fill("greeter-2")
    await expect(editor.get_by_role("status")).to_contain_text("This job starts now.")
    # what has no effect is said, and marked where it stands
    await expect(editor.get_by_role("status")).to_contain_text("extras.nodes is kept, and has no effect")
    await expect(editor.locator(".cm-lintRange-warning").first).to_contain_text('"nodes"')
    await page.keyboard.press("Control+S")
    await expect(page.locator(".lm-TabBar-tab.jp-mod-dirty")).to_have_count(0)
    written = file.read_text()
    assert loads_jsonc(written)["jobName"] == "greeter-2"
    assert written == COMMENTED.replace("greeter", "greeter-2")


async def test_a_job_file_is_dropped_on_the_editor_from_the_file_browser(
    lab_folder: Path, page: Page
) -> None:
    (lab_folder / "train.py").write_text("print(1)")
    await page.locator(".jp-LauncherCard", has_text="New PAI job").click()
    editor = page.locator(".pai-JobEditor")
    await editor.get_by_label("Job name").fill("mine")
    await drag(page, "greeter.pai.json", editor.locator(".pai-JobForm"))
    await expect(editor.get_by_role("status").first).to_contain_text("Imported: greeter.pai.json")
    await expect(editor.get_by_label("Job name")).to_have_value("greeter")
    await expect(editor.get_by_role("textbox", name="Job as JSON")).to_contain_text("greets once a day")
    await editor.get_by_role("button", name="Undo").click()
    await expect(editor.get_by_label("Job name")).to_have_value("mine")


async def test_a_job_that_was_pasted_is_saved_when_its_tab_closes(lab_folder: Path, page: Page) -> None:
    await page.locator(".jp-LauncherCard", has_text="New PAI job").click()
    editor = page.locator(".pai-JobEditor")
    await expect(editor).to_be_focused()
    await editor.evaluate(
        """(editor, text) => {
            const clipboardData = new DataTransfer();
            clipboardData.setData('text/plain', text);
            const options = { clipboardData, bubbles: true, cancelable: true };
            editor.dispatchEvent(new ClipboardEvent('paste', options));
        }""",
        COMMENTED,
    )
    await expect(editor.get_by_label("Job name")).to_have_value("greeter")
    divider = editor.get_by_role("separator", name="Width of the form")
    await divider.press("ArrowLeft")
    await expect(divider).to_have_attribute("aria-valuenow", "55")
    await page.locator(".lm-TabBar-tab", has_text="greeter").locator(".lm-TabBar-tabCloseIcon").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_role("button", name="Save as a file").click()
    name = dialog.get_by_label("Name of the file")
    await expect(name).to_have_value("greeter.pai.json")
    await name.press("Enter")
    await expect(dialog).to_contain_text("There is a file “greeter.pai.json” already.")
    await dialog.get_by_role("button", name="Cancel").click()
    await page.locator(".lm-TabBar-tab", has_text="greeter").locator(".lm-TabBar-tabCloseIcon").click()
    await dialog.get_by_role("button", name="Save as a file").click()
    await name.fill("pasted")
    await name.press("Enter")
    await expect(page.locator(".lm-TabBar-tab", has_text="pasted.pai.json")).to_be_visible()
    assert (lab_folder / "pasted.pai.json").read_text() == COMMENTED


async def drag(page: Page, file: str, target: Locator) -> None:
    """Drag a file out of the file browser and drop it."""
    item = page.locator(".jp-DirListing-item", has_text=file)
    await item.hover()
    await page.mouse.down()
    box = await target.bounding_box()
    assert box
    await page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60, steps=20)
    await page.mouse.up()


async def test_a_folder_of_the_notebook_server_goes_along(
    lab_folder: Path, page: Page, scheduler: RunningScheduler
) -> None:
    code = lab_folder / "experiment"
    code.mkdir()
    (code / "train.py").write_text("print('trained by', __file__)\n")
    await page.locator(".jp-LauncherCard", has_text="New PAI job").click()
    editor = page.locator(".pai-JobEditor")
    await editor.get_by_label("Job name").fill("with-code")
    await editor.get_by_role("button", name="Submit with code").click()
    # it says first what is needed, as Submit does
    await expect(editor.get_by_label("Command")).to_be_focused()
    await page.keyboard.type("cd $PAI_JOB_NAME && python3 train.py")
    await expect(editor.get_by_role("region", name="Submit")).to_contain_text("This job starts now.")
    await editor.get_by_role("button", name="Submit with code").click()
    chooser = page.locator(".jp-Dialog", has_text="Which folder goes along?")
    await chooser.locator(".jp-DirListing-item", has_text="experiment").click()
    await chooser.get_by_role("button", name="Select").click()
    files = page.get_by_role("dialog", name="Submit to PAI with this folder’s code")
    await expect(files).to_contain_text("a command begins with cd $PAI_JOB_NAME")
    await expect(files).to_contain_text("train.py")
    await page.screenshot(path=ARTEFACTS / "editor-with-code.png")
    await files.get_by_role("button", name="Submit").click()
    log = page.get_by_role("log")
    await expect(log).to_contain_text("trained by", timeout=60_000)
    async with Client(scheduler.url, "token-of-alice") as alice:
        config = await alice.config("alice", "with-code")
        assert config["codeDir"] == "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/$PAI_JOB_NAME"
