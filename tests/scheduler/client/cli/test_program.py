"""The `pai` command against a real scheduler, as somebody at a terminal has it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.scheduler.client.cli.pai import PAI, environ_for
from tests.testbed.scheduler import RunningScheduler, hello_job

Pai = Callable[..., subprocess.CompletedProcess[str]]


def _file(folder: Path, name: str, command: str = "echo hello", **fields: Any) -> Path:
    path = folder / f"{name}.json"
    job = json.dumps(hello_job(name, command, **fields))
    path.write_text(f"// a comment, and a comma at the end\n{job[:-1]},}}/* and another */")
    return path


def _eventually(pai: Pai, text: str, *words: str) -> None:
    for _ in range(300):
        if text in pai(*words).stdout:
            return
        time.sleep(0.1)
    pytest.fail(f"{words} never say {text}")


def test_a_job_goes_from_a_file_to_its_log(pai: Pai, tmp_path: Path) -> None:
    submitted = pai("submit", _file(tmp_path, "cli-hello"))
    assert (submitted.returncode, submitted.stdout) == (0, "Job cli-hello is submitted.\n")
    followed = pai("logs", "-f", "cli-hello", "main-0")
    assert (followed.returncode, followed.stdout) == (0, "hello\n")
    shown = pai("show", "cli-hello")
    assert "cli-hello (alice)" in shown.stdout
    assert "main-0" in shown.stdout
    listed = pai("jobs")
    assert listed.stdout.splitlines()[0].startswith("NAME")
    assert "cli-hello" in listed.stdout
    assert re.search(r" \d\d:\d\d:\d\d\+09:00 ", pai("jobs", "--zone", TZ="Asia/Tokyo").stdout)
    assert [job["name"] for job in json.loads(pai("jobs", "--limit", "1", "--json").stdout)] == ["cli-hello"]
    assert "at most 10000 a page" in pai("jobs", "--limit", "20000").stderr
    found = json.loads(pai("jobs", "--state", "running,succeeded", "--json").stdout)
    assert "cli-hello" in {job["name"] for job in found}
    assert "cli-hello" not in pai("jobs", "--state", "waiting,failed").stdout
    assert "there is no state SLEEPING" in pai("jobs", "--state", "waiting,sleeping").stderr


def test_submit_and_watch_gives_the_outcome(pai: Pai, tmp_path: Path) -> None:
    good = pai("submit", _file(tmp_path, "cli-good"), "--watch")
    assert good.returncode == 0, good.stderr
    assert good.stdout == "Job cli-good is submitted.\nhello\n"
    assert "Submitted by alice." in good.stderr
    assert "Job cli-good: SUCCEEDED." in good.stderr
    bad = pai("submit", _file(tmp_path, "cli-bad", "echo oh no >&2; exit 3"), "--watch")
    assert bad.returncode == 4
    assert "oh no" in bad.stdout
    assert "FAILED" in bad.stderr
    assert "3" in bad.stderr.splitlines()[-1]


def test_a_job_may_come_from_the_standard_input(pai: Pai) -> None:
    assert pai("submit", "-", stdin=json.dumps(hello_job("cli-stdin"))).returncode == 0
    assert pai("show", "cli-stdin").returncode == 0


def test_programs_get_json(pai: Pai, tmp_path: Path) -> None:
    assert json.loads(pai("submit", _file(tmp_path, "cli-json"), "--json").stdout) == {
        "name": "cli-json",
        "username": "alice",
    }
    for words in (("jobs",), ("nodes",), ("vcs",), ("show", "cli-json")):
        assert json.loads(pai(*words, "--json").stdout)
        assert json.loads(pai("--json", *words).stdout)
    outcome = pai("submit", _file(tmp_path, "cli-json-watch"), "--watch", "--json")
    assert json.loads(outcome.stdout)["jobStatus"]["state"] == "SUCCEEDED"
    assert json.loads(pai("validate", _file(tmp_path, "cli-json-v"), "--json").stdout)["fits"] == "now"


def test_a_job_is_stopped_and_deleted(pai: Pai, tmp_path: Path) -> None:
    pai("submit", _file(tmp_path, "cli-stop", "sleep 600"))
    # (its task may take a moment to end)
    assert pai("stop", "cli-stop", "--reason", "wrong data").stdout == "Job cli-stop is stopped.\n"
    _eventually(pai, "STOPPED", "show", "cli-stop")
    assert "wrong data" in pai("show", "cli-stop").stdout
    assert "STOPPED" in pai("show", "cli-stop").stdout
    assert pai("stop", "cli-stop").stdout == "Job cli-stop is stopped.\n"
    assert pai("delete", "cli-stop").returncode == 0
    gone = pai("show", "cli-stop")
    assert (gone.returncode, gone.stdout) == (1, "")
    assert gone.stderr == "Job cli-stop of user alice is not found.\n"


def test_several_jobs_are_stopped_and_deleted_by_names_and_patterns(pai: Pai, tmp_path: Path) -> None:
    for name in ("cli-many-1", "cli-many-2", "cli-other"):
        pai("submit", _file(tmp_path, name, "sleep 600"))
    stopped = pai("stop", "cli-many-?", "cli-gone", "cli-other")
    assert stopped.stdout.splitlines() == [
        *(f"Job cli-many-{number} is stopped." for number in (2, 1)),
        "Job cli-other is stopped.",
    ]
    assert (stopped.returncode, stopped.stderr) == (1, "Job cli-gone of user alice is not found.\n")
    # a pattern means jobs that there is something to stop of
    again = pai("stop", "cli-many-*")
    assert (again.returncode, again.stderr) == (1, "No job matches cli-many-*.\n")
    assert json.loads(pai("delete", "cli-many-*", "cli-other", "--json").stdout) == [
        {"name": name} for name in ("cli-many-2", "cli-many-1", "cli-other")
    ]
    assert "cli-many" not in pai("jobs").stdout


@pytest.mark.parametrize("words", [["jobs"], ["--help"], ["nodes", "--json"]])
def test_nothing_is_said_where_nobody_reads_the_output(scheduler: RunningScheduler, words: list[str]) -> None:
    unread, output = os.pipe()
    os.close(unread)
    environment = environ_for(scheduler)
    ended = subprocess.run([PAI, *words], stdout=output, stderr=subprocess.PIPE, env=environment, check=False)
    os.close(output)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_job_that_takes_its_time_to_end_says_until_when_and_is_killed_now(pai: Pai, tmp_path: Path) -> None:
    stubborn = "trap '' TERM; echo ready; while :; do sleep 0.1; done"
    job = _file(tmp_path, "cli-grace", stubborn, extras={"terminationGraceSeconds": 500})
    pai("submit", job)
    _eventually(pai, "ready", "logs", "cli-grace")
    said = pai("stop", "cli-grace").stdout
    until = re.search(r"Its tasks have until (\S+ \S+) to end by themselves", said)
    assert until, said
    shown = pai("show", "cli-grace").stdout
    assert "(ENDING)" in shown
    assert until[1] in shown
    assert "killed in 9 min" in shown
    assert pai("stop", "--now", "cli-grace").stdout == "Job cli-grace is stopped.\n"
    _eventually(pai, "STOPPED", "show", "cli-grace")


def test_more_time_to_end_than_the_limit_is_refused(pai: Pai, tmp_path: Path) -> None:
    refused = pai("submit", _file(tmp_path, "cli-long", "true", extras={"terminationGraceSeconds": 601}))
    assert refused.returncode == 1
    assert "600 s at most" in refused.stderr


def test_every_wrong_field_has_a_line_with_its_path(pai: Pai, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"jobName": "a b", "taskRoles": [{"name": "r", "comand": "x"}]}')
    refused = pai("submit", wrong)
    assert refused.returncode == 1
    paths = [line.strip().partition(": ")[0] for line in refused.stderr.splitlines()[1:]]
    assert {"$.jobName", "$.image", "$.taskRoles[0].command"} <= set(paths)
    checked = pai("validate", wrong)
    assert checked.returncode == 1
    assert [line.partition(": ")[0] for line in checked.stderr.splitlines()] == paths


def test_what_others_wrote_does_not_steer_the_terminal(pai: Pai, tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
    fields: dict[str, Any] = {f"{evil}field": 1, "image": f"{evil}image "}
    file = _file(tmp_path, "evil", **fields)
    for words in (("validate", file), ("submit", file), ("show", f"{evil}job"), ("stop", f"{evil}job")):
        said = pai(*words)
        assert said.returncode == 1, words
        assert "owned" in said.stderr, words
        assert not [char for char in said.stdout + said.stderr if char in evil and not char.isprintable()], (
            words
        )


async def test_a_file_is_kept_with_its_comments(pai: Pai, tmp_path: Path, http: httpx.AsyncClient) -> None:
    file = _file(tmp_path, "cli-kept", "true")
    assert pai("submit", file).returncode == 0
    kept = await http.get("/user/alice/jobs/cli-kept/config?as=submitted")
    assert kept.text == file.read_text()


def test_a_field_without_effect_is_told_by_validate_and_submit(pai: Pai, tmp_path: Path) -> None:
    file = _file(tmp_path, "cli-warned", "true", extras={"nodes": ["node-a"]})
    told = "extras.nodes is kept, and has no effect here.\n"
    for command, where in (("validate", "$.extras.nodes: "), ("submit", "")):
        done = pai(command, file)
        assert (done.returncode, done.stderr) == (0, where + told)
    checked = json.loads(pai("validate", file, "--json").stdout)
    assert [warning["path"] for warning in checked["warnings"]] == ["$.extras.nodes"]


def test_validate_says_whether_it_fits(pai: Pai, tmp_path: Path) -> None:
    right = pai("validate", _file(tmp_path, "cli-v"))
    assert (right.returncode, right.stdout) == (0, "The job is right, and fits now.\n")
    huge = hello_job("cli-huge")
    huge["taskRoles"] = [{"name": "a", "command": "x", "gpuNumber": 99}]
    never = pai("validate", "-", stdin=json.dumps(huge))
    assert never.returncode == 0
    assert never.stdout.startswith("The job is right, but cannot run here as it is. Never fits at present: ")
    assert "99" in never.stdout


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (None, 2, "No such file"),
        (b'{\n "jobName": }', 1, "line 2, column 13"),
        (b"\xff", 1, "not UTF-8"),
        (b"[]", 1, "no JSON object"),
    ],
)
def test_a_file_that_is_no_job_is_named(
    pai: Pai, tmp_path: Path, content: bytes | None, code: int, words: str
) -> None:
    file = tmp_path / "job.json"
    if content is not None:
        file.write_bytes(content)
    refused = pai("submit", file)
    assert (refused.returncode, refused.stdout) == (code, "")
    assert str(file) in refused.stderr
    assert words in refused.stderr


def test_wrong_usage_is_explained(pai: Pai) -> None:
    assert pai().returncode == 2
    assert pai("submit").returncode == 2
    assert pai("logs", "x", "--stream", "stdin").returncode == 2
    assert "exit codes" in pai("--help").stdout


def test_nobody_at_the_address_is_said_so(pai: Pai) -> None:
    silent = pai("jobs", "--url", "http://127.0.0.1:1")
    assert (silent.returncode, silent.stdout) == (3, "")
    assert silent.stderr.startswith("The scheduler at http://127.0.0.1:1 does not answer")
    assert "Traceback" not in silent.stderr


def test_without_a_token_it_says_where_to_put_one(pai: Pai) -> None:
    refused = pai("jobs", PAI_TOKEN="")
    assert refused.returncode == 1
    assert "PAI_TOKEN" in refused.stderr


def test_it_speaks_the_language_of_the_terminal(pai: Pai, tmp_path: Path) -> None:
    chinese = {"LC_ALL": "zh_CN.UTF-8", "PYTHONUTF8": "1"}
    assert pai("submit", _file(tmp_path, "cli-zh"), **chinese).stdout == "作业 cli-zh 已提交。\n"
    assert pai("jobs", **chinese).stdout.startswith("名称")
    assert "提交作业" in pai("--help", **chinese).stdout


def test_which_log_is_shown_of_many_tasks_is_said(pai: Pai) -> None:
    job = hello_job("cli-many")
    job["taskRoles"] = [
        {
            "name": "worker",
            "taskNumber": 2,
            "command": "test $PAI_TASK_INDEX = 0 || { sleep 1; echo me; exit 2; }",
        }
    ]
    watched = pai("submit", "-", "--watch", stdin=json.dumps(job))
    assert watched.returncode == 4
    assert "me" in watched.stdout
    shown = pai("logs", "cli-many")
    assert shown.stdout == "me\n"
    assert "worker-1" in shown.stderr
    assert pai("logs", "cli-many", "worker").returncode == 1
    assert pai("logs", "cli-many", "worker-0", "--stream", "stderr").stdout == ""
    assert pai("logs", "cli-many", "worker-7").returncode == 1


def test_nodes_and_virtual_clusters_are_tables(pai: Pai) -> None:
    nodes = pai("nodes").stdout
    assert "node-a" in nodes
    assert "(simulated)" in nodes
    assert {"default", "vision"} <= {line.split()[0] for line in pai("vcs").stdout.splitlines()}


def test_an_admin_sees_whose_jobs_they_are(pai: Pai, tmp_path: Path) -> None:
    pai("submit", _file(tmp_path, "cli-of-alice"))
    pai("submit", _file(tmp_path, "cli-of-bob"), PAI_TOKEN="token-of-bob")
    listed = pai("jobs", PAI_TOKEN="token-of-root").stdout
    assert "USER" in listed.splitlines()[0]
    assert pai("jobs", "--user", "bob").returncode == 1
    shown = pai("show", "cli-of-bob", "--user", "bob", PAI_TOKEN="token-of-root")
    assert "cli-of-bob (bob)" in shown.stdout


def test_interrupting_is_quiet(scheduler: RunningScheduler, pai: Pai, tmp_path: Path) -> None:
    pai("submit", _file(tmp_path, "cli-interrupted", "echo started; sleep 600"))
    with subprocess.Popen(
        [PAI, "logs", "-f", "cli-interrupted"],
        env=environ_for(scheduler),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as following:
        assert following.stdout is not None
        assert following.stderr is not None
        assert following.stdout.readline() == b"started\n"
        following.send_signal(signal.SIGINT)
        assert following.wait(30) == 130
        assert following.stderr.read() == b""
    pai("stop", "cli-interrupted")


def test_a_reader_who_has_enough_is_no_fault(scheduler: RunningScheduler, pai: Pai, tmp_path: Path) -> None:
    pai("submit", _file(tmp_path, "cli-yes", "yes | head -c 5000000"), "--watch")
    done = subprocess.run(
        ["sh", "-c", f"{PAI} logs cli-yes | head -n 1"],
        env=environ_for(scheduler),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == ("y\n", "")


def test_watching_outlives_a_restart_of_the_scheduler(
    own_scheduler: Callable[..., RunningScheduler], tmp_path: Path
) -> None:
    own = own_scheduler()
    gate = tmp_path / "gate"
    command = f"echo before; while [ ! -e {gate} ]; do sleep 0.05; done; echo after"
    environ = environ_for(own)
    subprocess.run([PAI, "submit", _file(tmp_path, "through", command)], env=environ, check=True)
    with subprocess.Popen(
        [PAI, "logs", "-f", "through"], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as following:
        assert following.stdout is not None
        assert following.stderr is not None
        assert following.stdout.readline() == b"before\n"
        own.kill()
        assert b"Waiting for it to come back" in following.stderr.readline()
        own.start()
        gate.touch()
        assert following.stdout.read() == b"after\n"
        assert following.wait(30) == 0


def test_a_failed_job_is_shown_with_the_last_lines_of_the_task_that_failed(pai: Pai, tmp_path: Path) -> None:
    job = hello_job("cli-last-words")
    command = r"seq 20; printf 'half\rdone\r\n'; printf '\tTraceback\033[31m\n' >&2; exit 3"
    job["taskRoles"] = [
        {"name": "idle", "command": "sleep 600"},
        {"name": "worker", "taskNumber": 2, "command": f"test $PAI_TASK_INDEX = 0 && sleep 600; {command}"},
    ]
    pai("submit", "-", "--watch", stdin=json.dumps(job))
    shown = pai("show", "cli-last-words").stdout.splitlines()
    above = shown.index("The last lines of worker-1's log:")
    lines = [line.strip() for line in shown[above + 1 :]]
    assert len(lines) == 8
    assert {"20", "done"} <= set(lines)
    assert any("Traceback" in line and "\x1b" not in line for line in lines)
    silent = _file(tmp_path, "cli-silent", "exit 3")
    pai("submit", silent, "--watch")
    assert pai("show", "cli-silent").stdout.endswith("\nmain-0 has written nothing.\n")


def test_a_job_that_is_to_be_tried_again_shows_what_its_last_attempt_wrote(pai: Pai, tmp_path: Path) -> None:
    pai("submit", _file(tmp_path, "cli-again", "echo what went wrong; exit 3", retryCount=-1))
    for _ in range(100):
        shown = pai("show", "cli-again").stdout
        if "The next attempt begins" in shown:
            break
    pai("stop", "cli-again")
    assert shown.endswith("\nThe last lines of main-0's log:\n  what went wrong\n")
    assert "what went wrong" not in pai("show", "cli-again").stdout


def test_a_debugged_job_says_what_is_kept_what_it_wrote_and_how_to_end_that(pai: Pai, tmp_path: Path) -> None:
    path = _file(tmp_path, "cli-held", "echo what went wrong; exit 4", jobEnvs={"isDebug": True})
    pai("submit", path)
    for _ in range(100):
        shown = pai("show", "cli-held").stdout
        if "DEBUG_HELD" in shown:
            break
    pai("stop", "cli-held")
    said = shown.partition("\n\nTask main-0 has ended with exit code 4;")[2].splitlines()
    assert said[0].endswith("its container stays for 168 hours, or until the job is stopped.")
    assert said[1:] == [
        "When you have seen enough: pai stop cli-held",
        "",
        "The last lines of main-0's log:",
        "  what went wrong",
    ]


def test_a_job_that_has_to_wait_is_told_why_when_it_is_submitted(pai: Pai) -> None:
    huge = hello_job("cli-in-vain")
    huge["taskRoles"] = [{"name": "a", "command": "x", "gpuNumber": 99}]
    said = pai("submit", "-", stdin=json.dumps(huge)).stdout.splitlines()
    pai("delete", "cli-in-vain")
    assert said[0] == "Job cli-in-vain is submitted."
    assert re.search(r"place \d+ in the queue: Never fits at present: ", said[1])


def test_a_job_that_had_ended_before_it_was_stopped_is_said_to_have(pai: Pai, tmp_path: Path) -> None:
    for name, command, words in (
        ("cli-failed", "exit 3", "had failed"),
        ("cli-fine", "true", "had succeeded"),
    ):
        pai("submit", "--watch", _file(tmp_path, name, command))
        said = pai("stop", name).stdout
        assert said.startswith(f"Job {name} {words} already; nothing was left to stop.\n")
        assert ("exit code 3" in said) == (name == "cli-failed")


def test_a_job_whose_results_cannot_be_written_is_told_of_when_it_is_submitted(
    pai: Pai, tmp_path: Path
) -> None:
    ran = pai("submit", _file(tmp_path, "cli-told", "true", outputDir="/Public/models"))
    assert ran.returncode == 0
    assert "User alice may not write to /Public/models." in ran.stderr
