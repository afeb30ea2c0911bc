"""What a newcomer sees when a job is wrong: what was wrong, where, and what to do, where they look first."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.testbed.images import tiny_image
from tests.testbed.scheduler import RunningScheduler, clean_environ, hello_job

PAI = Path(sys.executable).parent / "pai"
CLUSTER = """
nodes:
  - {name: node-a, cpus: 8, memoryMB: 8000, storageGB: 1000, gpus: {P100: 2}}
  - {name: node-b, cpus: 8, memoryMB: 8000, storageGB: 1000, gpus: {P100: 2}}
virtualClusters:
  default: {capacity: 50, maxCapacity: 50}
  vision: {capacity: 25, groups: [vision], maxCapacity: 100}
  secret: {capacity: 25, users: [root]}
registries: ["*", 127.0.0.1]
"""
OK, REFUSED, JOB_FAILED = 0, 1, 4


class Terminal:
    """Somebody at a terminal, who only has `pai`."""

    def __init__(self, scheduler: RunningScheduler, folder: Path) -> None:
        self._environ = clean_environ({"PAI_API_URL": scheduler.url, "PAI_TOKEN": "token-of-alice"})
        self._folder = folder

    def pai(self, *words: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run `pai` and return what it says."""
        return subprocess.run(
            [PAI, *words],
            env=self._environ | environ,
            capture_output=True,
            text=True,
            timeout=40,
            check=False,
        )

    def refused(self, job: object) -> str:
        """Submit a job that is refused; return the complaint."""
        said = self.pai("submit", self.file(job))
        assert (said.returncode, said.stdout) == (REFUSED, ""), said
        return said.stderr

    def fails(self, job: dict[str, Any]) -> str:
        """See a job through that fails; return what `pai show` says of it then."""
        watched = self.pai("submit", self.file(job), "--watch")
        assert watched.returncode == JOB_FAILED, watched
        shown = self.pai("show", job["jobName"]).stdout
        # the last line of --watch has the same sentence
        why = next(line for line in shown.splitlines() if line.startswith("Why"))
        assert why.removeprefix("Why").strip() in watched.stderr
        return shown

    def waits(self, job: dict[str, Any], until: str = "Waiting") -> str:
        """Submit a job that has to wait; return what `pai show` says, once that has the words `until`."""
        submitted = self.pai("submit", self.file(job))
        assert submitted.returncode == OK, submitted
        for _ in range(100):
            shown = self.pai("show", job["jobName"]).stdout
            if until in shown:
                break
        self.pai("stop", job["jobName"])
        assert until in shown
        return shown

    def file(self, job: object) -> Path:
        path = self._folder / "job.json"
        path.write_text(job if isinstance(job, str) else json.dumps(job))
        return path


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningScheduler]:
    """Run a scheduler on the process engine."""
    running = RunningScheduler(tmp_path_factory.mktemp("newcomer"), cluster=CLUSTER)
    yield running
    running.close()


@pytest.fixture
def alice(scheduler: RunningScheduler, tmp_path: Path) -> Terminal:
    """Sit at a terminal."""
    return Terminal(scheduler, tmp_path)


@pytest.fixture(scope="module")
def docker_scheduler(
    docker_host: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningScheduler]:
    """Run a scheduler on the Docker engine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOCKER_HOST", docker_host)
        running = RunningScheduler(
            tmp_path_factory.mktemp("containers"), "--engine", "docker", cluster=CLUSTER
        )
        yield running
        running.close()


@pytest.fixture
def in_containers(docker_scheduler: RunningScheduler, tmp_path: Path) -> Terminal:
    """Sit at a terminal of a cluster with containers."""
    return Terminal(docker_scheduler, tmp_path)


def job(
    name: str, command: str = "sleep 600", role: dict[str, Any] | None = None, **fields: Any
) -> dict[str, Any]:
    made = hello_job(name, command, **fields)
    made["taskRoles"] = [{"name": "main", "command": command, **(role or {})}]
    return made


# -- wrong on paper: the answer to `pai submit` --


def test_a_number_in_words_is_named_with_its_place_and_what_belongs_there(alice: Terminal) -> None:
    said = alice.refused(job("words", role={"cpuNumber": "two"}))
    assert "$.taskRoles[0].cpuNumber: cpuNumber must be a whole number" in said
    assert '"two"' in said


def test_a_misspelled_field_is_named_with_the_one_that_was_meant(alice: Terminal) -> None:
    said = alice.refused(job("typo", role={"gpuNumbr": 1}))
    assert said.count("$.taskRoles[0].gpuNumbr") == 1
    assert "gpuNumber" in said


def test_everything_that_is_wrong_is_said_at_once(alice: Terminal) -> None:
    said = alice.refused({"jobName": "my job", "taskRoles": [{"name": "main", "shmMB": 200}]})
    for place in ("$.jobName", "$.image", "$.taskRoles[0].command", "$.taskRoles[0].shmMB"):
        assert f"  {place}: " in said


def test_a_comma_too_few_is_found_by_line_and_column(alice: Terminal) -> None:
    said = alice.refused('{"jobName": "comma",\n "image": "x"\n "taskRoles": []}')
    assert "job.json, line 3, column 2: " in said


def test_a_name_that_is_taken_is_said_and_what_to_do(alice: Terminal) -> None:
    alice.waits(job("taken"), until="State")
    assert "There is a job named taken already. Choose another name." in alice.refused(job("taken"))


def test_a_virtual_cluster_that_is_not_there_is_said_with_those_that_are(alice: Terminal) -> None:
    said = alice.refused(job("nowhere", virtualCluster="visoin"))
    assert "visoin" in said
    assert "vision" in said


def test_a_virtual_cluster_for_others_is_said_with_those_that_are_open(alice: Terminal) -> None:
    said = alice.refused(job("closed", virtualCluster="secret"))
    assert "secret is not open to you" in said
    assert "default, vision" in said


# -- waits in vain: `pai show` --


def test_a_gpu_type_that_is_not_there_is_said_with_those_that_are(alice: Terminal) -> None:
    shown = alice.waits(job("v100", gpuType="V100", role={"gpuNumber": 1}))
    assert "Never fits at present" in shown
    assert "V100" in shown
    assert "P100" in shown
    assert (
        "cannot run here as it is"
        in alice.pai("validate", alice.file(job("v", gpuType="V100", role={"gpuNumber": 1}))).stdout
    )


def test_more_gpus_than_a_machine_has_are_said_with_how_many_there_are(alice: Terminal) -> None:
    shown = alice.waits(job("four-gpus", virtualCluster="vision", role={"gpuNumber": 4}))
    assert "Never fits at present" in shown
    assert "4" in shown
    assert "the largest node has 2" in shown


def test_more_than_the_virtual_cluster_may_have_is_said(alice: Terminal) -> None:
    shown = alice.waits(job("too-much", role={"gpuNumber": 1, "taskNumber": 3}))
    assert "Never fits at present" in shown
    assert "virtual cluster default" in shown
    assert "maxCapacity" in shown or "at most" in shown


def test_a_failure_that_repeats_says_when_it_is_tried_again_why_and_what_was_written(alice: Terminal) -> None:
    shown = alice.waits(
        job("loop", "echo no such file; exit 3", retryCount=-1), until="The next attempt begins"
    )
    assert "exit code 3" in shown
    assert "no such file" in shown


def test_a_task_that_somebody_kills_says_so(alice: Terminal) -> None:
    shown = alice.waits(job("killed", "echo about to go; kill -KILL $$"), until="The next attempt begins")
    assert "exit code 137" in shown
    assert "SIGKILL" in shown
    assert "about to go" in shown


def test_an_auth_file_that_is_not_there_is_named(alice: Terminal) -> None:
    uri = "$PAI_DEFAULT_FS_URI/alice/no-such-login.txt"
    shown = alice.fails(job("login", authFile=uri))
    assert "no-such-login.txt" in shown
    assert "authFile" in shown


# -- fails: `pai show`, and the last line of `pai submit --watch` --


def test_a_command_that_is_not_there_is_said_and_named(alice: Terminal) -> None:
    shown = alice.fails(job("nocommand", "pyhton train.py"))
    assert "exit code 127. A command was not found: is it spelled right" in shown
    assert "pyhton" in shown
    assert "找不到命令" in alice.pai("show", "nocommand", LC_ALL="zh_CN.UTF-8", PYTHONUTF8="1").stdout


def test_a_file_that_cannot_be_executed_is_said_and_named(alice: Terminal) -> None:
    shown = alice.fails(job("noexec", "echo echo hi > run.sh; ./run.sh"))
    assert "exit code 126" in shown
    assert "executable" in shown
    assert "run.sh" in shown


def test_a_script_that_fails_shows_the_end_of_its_traceback(alice: Terminal) -> None:
    script = "import json\ndef load():\n    return json.loads('{')\nload()\n"
    shown = alice.fails(job("traceback", f"cat > train.py <<'END'\n{script}END\npython3 train.py"))
    assert "exit code 1" in shown
    assert "Its command failed" in shown
    assert "The last lines of main-0's log:" in shown
    assert "json.decoder.JSONDecodeError" in shown.splitlines()[-1]


def test_a_crash_is_said_in_words(alice: Terminal) -> None:
    shown = alice.fails(job("crash", "exec python3 -c 'import os; os.kill(os.getpid(), 11)'"))
    assert "exit code 139" in shown
    assert "SIGSEGV" in shown


def test_the_task_that_failed_of_many_is_named_and_its_log_is_shown(alice: Terminal) -> None:
    command = "test $PAI_TASK_INDEX = 2 && { echo I am the one; exit 5; }; sleep 600"
    shown = alice.fails(job("many", command, role={"taskNumber": 3}))
    assert "Task main-2 ended with exit code 5" in shown
    assert "I am the one" in shown


def test_a_disk_limit_is_said_with_the_field_to_raise(alice: Terminal) -> None:
    role = {"storageGB": 0}
    shown = alice.fails(job("disk", "head -c 5000000 /dev/zero > scratch; sleep 600", role=role))
    assert "storageGB" in shown
    assert "198" in shown or "CONTAINER_OOD" in shown


def test_a_port_that_is_taken_is_said_with_the_field_to_change(alice: Terminal) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        role = {"portList": [{"label": "web", "beginAt": port, "portNumber": 1}]}
        shown = alice.waits(job("port", role=role), until=str(port))
    assert f"Port {port} of this machine is taken by another program" in shown
    assert "beginAt" in shown


def test_a_time_limit_is_said_with_the_field_to_raise(alice: Terminal) -> None:
    limited = job("limited", "echo still at it; sleep 600", extras={"maxRunSeconds": 1})
    watched = alice.pai("submit", alice.file(limited), "--watch")
    assert watched.returncode == JOB_FAILED
    assert "maxRunSeconds" in watched.stderr.splitlines()[-1]
    shown = alice.pai("show", "limited").stdout
    assert "1 s" in shown
    assert "maxRunSeconds" in shown


def test_code_that_is_not_there_is_named_with_where_ones_own_is(alice: Terminal) -> None:
    shown = alice.fails(job("no-code", codeDir="$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/trian"))
    assert "/alice/trian cannot be used." in shown
    assert "There is no file or folder /alice/trian" in shown
    shown = alice.fails(job("bobs-code", codeDir="$PAI_DEFAULT_FS_URI/bob/train"))
    assert "User alice may not read /bob/train. Your own files are in /alice." in shown


def test_code_that_is_too_large_is_said_to_be_with_where_data_goes(
    scheduler: RunningScheduler, alice: Terminal
) -> None:
    with scheduler.put("alice/large/model.bin").open("r+b") as file:
        file.truncate(201 * 10**6)
    shown = alice.fails(job("large-code", codeDir="/alice/large"))
    assert "It holds 201 MB in 1 file; code may have 200 MB" in shown
    assert "dataDir or extras.mounts" in shown


def test_results_that_may_not_go_where_they_are_to_are_refused_before_the_training(alice: Terminal) -> None:
    shown = alice.fails(job("no-results", outputDir="$PAI_DEFAULT_FS_URI/Public/models"))
    assert "User alice may not write to /Public/models." in shown


def test_data_over_the_system_is_refused_with_the_place(alice: Terminal) -> None:
    mounts = [{"source": "/Public/data", "target": "/usr/share/data"}]
    said = alice.refused(job("over-the-system", extras={"mounts": mounts}))
    assert "$.extras.mounts[0].target" in said
    assert "would hide a part of the system" in said


# -- wrong with containers --


def test_an_image_that_is_not_there_is_named(in_containers: Terminal, docker_registry: str) -> None:
    image = f"{docker_registry}/pytorhc:latest"
    shown = in_containers.fails(job("image", image=image))
    assert f"The image {image} does not exist" in shown


def test_memory_that_ran_out_is_said_with_the_field_to_raise(
    in_containers: Terminal, debian_image: str
) -> None:
    command = "python3 -c 'x = bytearray(300 << 20)'"
    shown = in_containers.fails(job("memory", command, {"memoryMB": 100}, image=debian_image))
    assert "memoryMB" in shown
    assert "CONTAINER_OOM_KILLED" in shown


def test_a_shell_that_the_image_lacks_is_named(
    in_containers: Terminal, docker_host: str, debian_image: str
) -> None:
    shown = in_containers.fails(job("zsh", "zsh -c 'echo hi'", image=debian_image))
    assert "exit code 127" in shown
    assert "zsh" in shown.splitlines()[-1]
    # an image without bash: its sh knows no [[
    shown = in_containers.fails(job("bashism", "[[ a == a ]] || exit 127", image=tiny_image(docker_host)))
    assert "exit code 127" in shown
    assert "[[" in shown.splitlines()[-1]
