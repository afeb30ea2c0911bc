"""The documents' couplet job from end to end: data and code in, training, results out, as somebody types it.

`run_samples.py` is the documents' text, word for word but for the three variables that are to be replaced as
they say; `train.sh` trains something smaller than tensor2tensor in the same place.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.testbed.fixtures import provide
from tests.testbed.hdfs import ACCOUNT
from tests.testbed.images import couplet_image
from tests.testbed.scheduler import RunningScheduler, clean_environ

PAI = Path(sys.executable).parent / "pai"
JOB = Path(__file__).parents[1] / "fixtures" / "jobs" / "openpai-couplet.json"
#: Needs the internet, and is not needed.
FUTURE = "pip3 --quiet install future && "

RUN_SAMPLES = """import os
import sys
import hdfs
import subprocess

hdfs_url = "YOUR_HDFS_URL" 
hdfs_user_name = "YOUR_HDFS_USERNAME"
root_dir = "YOUR_PROJECT_ROOT_DIR"

class HDFSHelper(object):

    def __init__(self, hdfs_url, hdfs_user_name, hdfs_root):
        self.__client = hdfs.InsecureClient(hdfs_url, root=hdfs_root, user=hdfs_user_name)
        self.__client.set_permission(hdfs_root,777)

    def Download(self, hdfs_path, local_path):
        print("Downloading from {} to {}".format(hdfs_path, local_path))
        os.makedirs(local_path, exist_ok=True)
        self.__client.download(hdfs_path, local_path)

    def Upload(self, local_path, hdfs_path):
        print("Uploading from {} to {}".format(local_path, hdfs_path))
        self.__client.makedirs(hdfs_path)
        self.__client.upload(hdfs_path, local_path, overwrite=True)

hdfsHelper = HDFSHelper(hdfs_url, hdfs_user_name, root_dir)

# Downloading data
hdfsHelper.Download(os.path.join(root_dir, "data"), ".")

# Call train.sh
subprocess.call("./train.sh", shell=True)

# Uploading data
jobName = os.environ['PAI_JOB_NAME']
output_dir = os.path.join(root_dir, "output", jobName)
hdfsHelper.Upload("./output/", output_dir)
"""  # noqa: W291 - word for word
FILLED_IN = {
    '"YOUR_HDFS_URL"': 'os.environ["PAI_DEFAULT_FS_URI"]',
    "YOUR_HDFS_USERNAME": "demo",
    "YOUR_PROJECT_ROOT_DIR": "/demo",
}

#: The documents' frame; what is trained is which character answers which, counted over all couplets.
TRAIN = r"""#!/bin/bash
HOME_DIR=$(cd `dirname $0`; pwd)
echo $HOME_DIR
cd $HOME_DIR

# set environment
TRAIN_DIR=${HOME_DIR}/output
LOG_DIR=${TRAIN_DIR}
DATA_DIR=${HOME_DIR}/data

mkdir -p ${TRAIN_DIR}

# train model
setting=default

echo start training...

DATA_DIR=$DATA_DIR TRAIN_DIR=$TRAIN_DIR python3 train.py 2>&1 | tee -a ${LOG_DIR}/train_${setting}.log
"""
TRAIN_PY = """
import collections, json, os, pathlib
data, out = (pathlib.Path(os.environ[name]) for name in ("DATA_DIR", "TRAIN_DIR"))
up, down = ((data / f"train.txt.{side}.clean").read_text("utf-8").splitlines() for side in ("up", "down"))
answers = collections.defaultdict(collections.Counter)
for upper, lower in zip(up, down, strict=True):
    for ask, answer in zip(upper.split(), lower.split(), strict=True):
        answers[ask][answer] += 1
model = {ask: found.most_common(1)[0][0] for ask, found in answers.items()}
(out / "model.json").write_text(json.dumps(model, ensure_ascii=False, sort_keys=True), "utf-8")
print("trained on", len(up), "couplets:", model["天"])
"""
UP, DOWN = "天 高 云 淡\n风 天\n天 长\n", "地 厚 风 清\n雨 地\n日 久\n"
SETTINGS = """
    {
        "pai.job.upload.enabled": true,
        "pai.job.upload.exclude": [],
        "pai.job.upload.include": [
            "**/*.py",
            "**/*.sh"
        ],
        "pai.job.generateJobName.enabled": true
    }
"""

#: the GPU that the documents' job asks for, on machines elsewhere
GPUS_OF_THE_NODES = """
nodes:
  - {name: node-b, gpus: {TITANX: 1}}
  - {name: node-c, gpus: {TITANX: 1}}
registries: ["*"]
"""

Pai = Callable[..., str]


# (in a Swarm the code of the engine for Docker runs on each node)
@pytest.fixture(params=["process", pytest.param("docker", marks=pytest.mark.long), "swarm"])
def scheduler(
    request: pytest.FixtureRequest,
    own_scheduler: Callable[..., RunningScheduler],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[RunningScheduler]:
    if request.param == "process":
        yield own_scheduler("--engine", "process")
        return
    host = request.getfixturevalue("docker_host")
    image = provide(couplet_image, host)
    if request.param == "docker":
        monkeypatch.setenv("DOCKER_HOST", host)
        yield own_scheduler("--engine", "docker")
        return
    nodes = request.getfixturevalue("three_nodes")
    nodes.load(host, image)
    hdfs = request.getfixturevalue("hdfs")
    with nodes.without("node-a"):
        yield request.getfixturevalue("swarm_scheduler")(
            *("--storage", hdfs.url, "--storage-user", ACCOUNT), cluster=GPUS_OF_THE_NODES
        )


@pytest.fixture
def pai(scheduler: RunningScheduler) -> Pai:
    """Run `pai` as demo; return what it prints."""

    def run(*words: str | Path, cwd: Path) -> str:
        environ = clean_environ({"PAI_API_URL": scheduler.url, "PAI_TOKEN": "token-of-demo"})
        done = subprocess.run(
            [PAI, *words], env=environ, cwd=cwd, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return the folder of the documents' project, as it is after all files of theirs were made."""
    folder = tmp_path / "couplet"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "__init__.py").touch()
    (folder / "data" / "train.txt.up.clean").write_text(UP, "utf-8")
    (folder / "data" / "train.txt.down.clean").write_text(DOWN, "utf-8")
    samples = RUN_SAMPLES
    for variable, value in FILLED_IN.items():
        samples = samples.replace(variable, value)
    (folder / "code" / ".vscode").mkdir(parents=True)
    (folder / "code" / "run_samples.py").write_text(samples)
    (folder / "code" / "train.sh").write_text(TRAIN)
    (folder / "code" / "train.py").write_text(TRAIN_PY, "utf-8")
    (folder / "code" / "notes.txt").write_text("stays here")
    (folder / "code" / ".vscode" / "settings.json").write_text(SETTINGS)
    job = JOB.read_text("utf-8")
    assert FUTURE in job
    (folder / "code" / "new_job.pai.json").write_text(job.replace(FUTURE, ""))
    return folder


def test_the_documents_couplet_job_goes_from_data_to_downloaded_results(pai: Pai, project: Path) -> None:
    pai("fs", "put", "data", "/demo/data", cwd=project)
    said = pai("submit", "new_job.pai.json", "--watch", cwd=project / "code")
    name = re.findall(r"Job (train_couplet_demo_[0-9a-f]{8}) is submitted", said)[0]
    assert "trained on 3 couplets: 地" in said
    assert pai("fs", "ls", name, cwd=project).split() == ["run_samples.py", "train.py", "train.sh"]
    pai("fs", "get", f"/demo/output/{name}", "results", cwd=project)
    results = sorted(path for path in (project / "results").rglob("*") if path.is_file())
    assert [path.name for path in results] == ["model.json", "train_default.log"]
    model = json.loads(results[0].read_text("utf-8"))
    assert (model["天"], model["高"], model["风"]) == ("地", "厚", "雨")
    # a second run has a name of its own and sends nothing again
    again = pai("submit", "new_job.pai.json", cwd=project / "code")
    assert "Files transferred: 0 (0 B); there already: 3." in again
    assert name not in again
