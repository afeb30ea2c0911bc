"""`pai submit` with code, on a real scheduler."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

from tests.testbed.scheduler import hello_job

Pai = Callable[..., subprocess.CompletedProcess[str]]
ENABLED = '{"pai.job.upload.enabled": true}'


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """Return a job's file in a folder with code."""
    name = f"cli-code-{uuid4().hex[:8]}"
    (tmp_path / "main.py").write_text("print(1)")
    (tmp_path / "notes.txt").write_text("notes")
    (tmp_path / ".pai").mkdir()
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(hello_job(name, "ls $PAI_JOB_NAME")))
    return path


def test_the_settings_beside_the_job_send_its_code(pai: Pai, job: Path) -> None:
    (job.parent / ".pai" / "settings.json").write_text(ENABLED)
    done = pai("submit", job, "--watch")
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        f"Code in /alice/{job.stem}. Files transferred: 1 (8 B); there already: 0.\n"
        f"Job {job.stem} is submitted.\nmain.py\n"
    )


def test_without_settings_or_against_them_nothing_is_sent(pai: Pai, job: Path) -> None:
    (job.parent / ".pai" / "settings.json").write_text("broken")
    wrong = pai("submit", job)
    assert wrong.returncode == 1
    assert "settings.json, line 1" in wrong.stderr
    assert pai("submit", job, "--no-code").stdout == f"Job {job.stem} is submitted.\n"
    assert pai("fs", "ls", job.stem).returncode == 1


def test_options_choose_the_folder_the_files_and_the_name(pai: Pai, job: Path) -> None:
    done = pai(
        *("submit", "-", "--code", job.parent, "--include", "**/*.txt", "--include", "*.py"),
        *("--exclude", "main*", "--generate-name", "--json"),
        stdin=job.read_text(),
    )
    name = json.loads(done.stdout)["name"]
    assert re.fullmatch(f"{job.stem}_[0-9a-f]{{8}}", name)
    assert pai("fs", "ls", name).stdout == "notes.txt\n"


def test_a_name_that_is_taken_is_refused_before_anything_is_sent(pai: Pai, job: Path) -> None:
    assert pai("submit", job, "--code", job.parent).returncode == 0
    again = pai("submit", job, "--code", job.parent)
    assert again.returncode == 1
    assert again.stderr == f"There is a job named {job.stem} already. Choose another name.\n"


def test_no_file_is_no_code(pai: Pai, job: Path) -> None:
    none = pai("submit", job, "--include", "*.cpp")
    assert none.returncode == 1
    assert "No file in" in none.stderr
    nowhere = pai("submit", job, "--code", job.parent / "nowhere")
    assert nowhere.returncode == 1
    assert "nowhere cannot be read: No such file or directory" in nowhere.stderr
    assert pai("show", job.stem).returncode == 1


def test_code_that_goes_nowhere_is_missed_before_the_job_fails(pai: Pai, job: Path) -> None:
    config = {**json.loads(job.read_text()), "codeDir": f"$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/{job.stem}"}
    job.write_text(json.dumps(config))
    told = pai("validate", job)
    assert (told.returncode, told.stdout) == (0, "The job is right, and fits now.\n")
    assert told.stderr.startswith("$.codeDir: codeDir ")
    submitted = pai("submit", job)
    assert "`pai submit --code FOLDER` sends it along" in submitted.stderr
    assert submitted.stdout.startswith("No code was sent: no .pai/settings.json beside the job asks for it.")
    job.write_text(json.dumps({**config, "jobName": f"{job.stem}-2"}))
    assert pai("submit", job, "--no-code").stdout.startswith(f"Job {job.stem}-2 is submitted.")


def test_a_job_is_submitted_to_start_after_others_and_both_are_shown_with_the_other(
    pai: Pai, job: Path
) -> None:
    first, last = f"{job.stem}-first", f"{job.stem}-last"
    assert pai("submit", "-", stdin=json.dumps(hello_job(first, "exec sleep 1000"))).returncode == 0
    submitted = pai("submit", job, "--after", f"{first}:ended")
    assert submitted.stdout == f"Job {job.stem} is submitted.\nWaiting for job {first} to end.\n"
    asks = hello_job(last, extras={"priority": 60, "after": [job.stem]})
    options = ("--after", first, "--after", f"{job.stem}:failed")
    submitted = pai("submit", "-", *options, stdin=json.dumps(asks))
    assert submitted.stdout.splitlines()[1] == (
        f"Waiting for 3 jobs: {job.stem} (succeeded), {first} (succeeded), {job.stem} (failed)."
    )
    shown = pai("show", job.stem).stdout
    assert re.search(rf"^Starts after +{first} \(ended\): (WAITING|RUNNING)$", shown, re.MULTILINE)
    assert f"Jobs after it    {last} (succeeded): WAITING, {last} (failed): WAITING\n" in shown
    assert pai("stop", first).returncode == 0


def test_a_condition_that_there_is_not_is_wrong_usage(pai: Pai, job: Path) -> None:
    wrong = pai("submit", job, "--after", "x:done")
    assert wrong.returncode == 2
    assert "done must be one of succeeded, ended, failed" in wrong.stderr


def test_a_job_that_nobody_has_cannot_be_waited_for(pai: Pai, job: Path) -> None:
    wrong = pai("submit", job, "--after", "nobodys")
    assert wrong.returncode == 1
    assert "extras.after[0]: User alice has no job named nobodys to wait for." in wrong.stderr
