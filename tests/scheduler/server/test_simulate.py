"""`pai-scheduler simulate` reads files, tells what came out, and refuses what it cannot use in a sentence."""

from __future__ import annotations

import csv
import gzip
import json
import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pai_scheduler.server.main import main
from tests.testbed.scheduler import PROGRAM, clean_environ

CLUSTER = """
nodes:
- {name: a, gpus: {t: 2}}
- {name: b, gpus: {t: 2}}
virtualClusters:
  default: {capacity: 50}
  other: {capacity: 50}
defaults: {terminationGraceSeconds: 0}
"""
TRACE = """job,virtualCluster,submitSeconds,runSeconds,tasks,gpus
stays,default,0,100,1,2
borrows,default,5,100,1,2
by right,other,15,10,1,2
"""

Simulate = Callable[..., tuple[int, str]]


@pytest.fixture
def simulate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Simulate:
    """Run the command on the two files; return the exit code and what was said."""
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "jobs.csv").write_text(TRACE)

    def run(*words: str, trace: str = "jobs.csv", cluster: str = "cluster.yaml") -> tuple[int, str]:
        files = ["--trace", str(tmp_path / trace), "--cluster", str(tmp_path / cluster)]
        code = main(["simulate", *files, *words])
        said = capsys.readouterr()
        return code, said.out + said.err

    return run


def test_the_numbers_are_json_for_programs(simulate: Simulate) -> None:
    code, said = simulate("--json")
    found = json.loads(said)
    assert code == 0
    assert (found["jobs"], found["ended"], found["preemptions"], found["makespanSeconds"]) == (3, 3, 1, 125.0)
    assert found["virtualClusters"]["other"]["queueingSeconds"] == {"mean": 0.0, "median": 0.0, "p99": 0.0}
    assert found["completionSeconds"]["mean"] == round((100 + 120 + 10) / 3, 3)


def test_a_stopped_job_keeps_its_place_as_trace_option_or_cluster_file_say(
    simulate: Simulate, tmp_path: Path
) -> None:
    def waits(*words: str, **files: str) -> float:
        _, said = simulate("--json", *words, **files)
        return float(json.loads(said)["virtualClusters"]["other"]["queueingSeconds"]["mean"])

    (tmp_path / "usual.yaml").write_text(CLUSTER.replace("defaults: {terminationGraceSeconds: 0}", ""))
    head, *rows = TRACE.splitlines()
    trace = [f"{head},terminationGraceSeconds", *(f"{row},4" for row in rows)]
    (tmp_path / "own.csv").write_text("\n".join(trace))
    assert waits() == 0
    assert waits(cluster="usual.yaml") == 10
    assert waits("--grace", "700") == 85  # when the first has ended
    assert waits("--grace", "30") == 30
    assert waits("--grace", "30", trace="own.csv") == 4


def test_people_read_a_table(simulate: Simulate) -> None:
    code, said = simulate()
    assert code == 0
    assert "3 jobs on 4 GPUs" in said
    assert "stopped for others    1 times" in said
    assert any(line.split()[:3] == ["other", "1", "10"] for line in said.splitlines())


def test_every_job_and_a_picture_are_written(simulate: Simulate, tmp_path: Path) -> None:
    code, _ = simulate("--jobs", str(tmp_path / "times.csv"), "--plot", str(tmp_path / "times.svg"))
    assert code == 0
    with open(tmp_path / "times.csv", encoding="utf-8") as file:
        times = {row["job"]: (row["startSeconds"], row["endSeconds"]) for row in csv.DictReader(file)}
    assert times["borrows"] == ("25.000", "125.000")
    assert "jobs.csv on cluster.yaml" in (tmp_path / "times.svg").read_text(encoding="utf-8")


def test_a_packed_trace_is_read(simulate: Simulate, tmp_path: Path) -> None:
    (tmp_path / "jobs.csv.gz").write_bytes(gzip.compress(TRACE.encode()))
    assert simulate("--json", trace="jobs.csv.gz") == simulate("--json")


def test_without_ends_it_tells_how_much_is_taken(simulate: Simulate) -> None:
    code, said = simulate("--without-ends")
    assert code == 0
    assert "2 of 3 jobs found room on 4 GPUs; none ended." in said
    assert " 100 % asked for: 50.00 % taken" in said
    assert json.loads(simulate("--without-ends", "--json")[1])["allocatedPercent"]["130"] == 100.0


def test_the_same_files_give_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    lines = [
        f"{'default' if number % 3 else 'other'},{number * 7 % 100},{number * 13 % 50},{1 + number % 2},1"
        for number in range(200)
    ]
    header = "virtualCluster,submitSeconds,runSeconds,tasks,gpus"
    (tmp_path / "jobs.csv").write_text("\n".join([header, *lines]))
    files = ["--trace", str(tmp_path / "jobs.csv"), "--cluster", str(tmp_path / "cluster.yaml")]
    words = ["simulate", *files, "--json"]
    said = {
        subprocess.run(
            [PROGRAM, *words],
            env=clean_environ() | {"PYTHONHASHSEED": seed, "PATH": os.environ["PATH"]},
            capture_output=True,
            check=True,
            timeout=120,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(said) == 1
    assert json.loads(said.pop())["ended"] == 200


@pytest.mark.parametrize(
    ("trace", "cluster", "sentence"),
    [
        (TRACE, "nodes: []", "names no machines: list them under nodes, with GPUs."),
        (TRACE, "nodes: [{nam: a}]", "cannot be used: nodes[0].nam: nam is not known here."),
        (
            TRACE,
            "nodes: [{name: a}]",
            "job by right is of the virtual cluster other, which the cluster file does not have",
        ),
        ("submitSeconds,runSeconds,cpus\n1,2,3", CLUSTER, "ask for cpus, and the cluster file does not say"),
        ("submitSeconds,runSeconds", CLUSTER, "jobs.csv cannot be used: there is no job in it"),
        ("submitSeconds,runSeconds\n1,x", CLUSTER, "line 2: runSeconds must be a number, 0 or more"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(
    simulate: Simulate, tmp_path: Path, trace: str, cluster: str, sentence: str
) -> None:
    (tmp_path / "jobs.csv").write_text(trace)
    (tmp_path / "cluster.yaml").write_text(cluster)
    code, said = simulate()
    assert code == 2
    assert sentence in said


def test_files_that_are_not_there_or_no_text_are_refused(simulate: Simulate, tmp_path: Path) -> None:
    assert "none.csv cannot be read: No such file or directory" in simulate(trace="none.csv")[1]
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\xfd")
    assert simulate(trace="bytes.csv")[0] == 2
    (tmp_path / "broken.csv.gz").write_bytes(gzip.compress(TRACE.encode())[:-9])
    assert simulate(trace="broken.csv.gz")[0] == 2
    assert "cannot be written" in simulate("--plot", str(tmp_path / "no" / "folder.svg"))[1]


def test_machines_must_be_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["simulate", "--trace", str(tmp_path / "jobs.csv")]) == 2
    assert "Say on which machines: --cluster FILE, with nodes." in capsys.readouterr().err


def test_with_known_times_shorter_jobs_come_first_where_the_cluster_says_so(
    simulate: Simulate, tmp_path: Path
) -> None:
    # one GPU: the short job passes the long one that waits before it
    (tmp_path / "jobs.csv").write_text("submitSeconds,runSeconds,gpus\n0,10,1\n1,100,1\n2,20,1\n")
    for share, mean in (
        ("capacity: 100", (10 + 109 + 128) / 3),
        ("capacity: 100, shorterFirst: 5", (10 + 129 + 28) / 3),
    ):
        (tmp_path / "cluster.yaml").write_text(
            f"nodes: [{{name: a, gpus: {{t: 1}}}}]\nvirtualClusters: {{default: {{{share}}}}}"
        )
        assert json.loads(simulate("--json", "--known-times")[1])["completionSeconds"]["mean"] == round(
            mean, 3
        )


def test_load_submits_the_jobs_so_many_times_as_fast(simulate: Simulate, tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("submitSeconds,runSeconds,gpus\n100,10,1\n120,10,1\n140,10,1\n")
    (tmp_path / "cluster.yaml").write_text("nodes: [{name: a, gpus: {t: 1}}]")
    for load, mean in (("1", 10), ("2", 10), ("4", (10 + 15 + 20) / 3)):
        found = json.loads(simulate("--json", "--load", load)[1])
        assert found["completionSeconds"]["mean"] == mean


def test_it_tells_how_true_estimates_were(simulate: Simulate, tmp_path: Path) -> None:
    # the limit is thrice what the job runs for: the one behind it starts in a third of the time that is told
    (tmp_path / "jobs.csv").write_text("submitSeconds,runSeconds,gpus\n0,100,2\n0,100,2\n0,100,1\n")
    (tmp_path / "cluster.yaml").write_text("nodes: [{name: a, gpus: {t: 2}}]")
    said = simulate("--estimates", "--known-times", "3")[1]
    assert "2 jobs did not start at once; 100.0 % were told when." in said
    assert "started sooner        100.0 %" in said
    found = json.loads(simulate("--estimates", "--known-times", "--json")[1])["estimates"]
    assert found == {
        "startedAtOnce": 1,
        "waited": 2,
        "notEstimated": 0,
        "withinFactor2": 2,
        "sooner": 0,
        "later": 0,
        "medianRatio": 1.0,
    }
    assert "estimates" not in json.loads(simulate("--json")[1])
    with pytest.raises(SystemExit):
        simulate("--known-times", "0.5")


def test_where_users_share_the_column_user_decides_who_is_next(simulate: Simulate, tmp_path: Path) -> None:
    # one GPU: bob's one job need not wait for all of alice's
    lines = ["user,submitSeconds,runSeconds,gpus", *["alice,0,100,1"] * 5, "bob,1,100,1"]
    (tmp_path / "jobs.csv").write_text("\n".join(lines))
    ends = []
    for share in ("capacity: 100", "capacity: 100, fairShare: {halfLifeHours: 24}"):
        (tmp_path / "cluster.yaml").write_text(
            f"nodes: [{{name: a, gpus: {{t: 1}}}}]\nvirtualClusters: {{default: {{{share}}}}}"
        )
        simulate("--jobs", str(tmp_path / "fared.csv"))
        ends.append((tmp_path / "fared.csv").read_text().splitlines()[-1].split(",")[4])
    assert ends == ["600.000", "200.000"]


def test_with_levels_and_checkpoints_a_short_job_passes_a_long_one_that_goes_on_where_it_was(
    simulate: Simulate, tmp_path: Path
) -> None:
    # one GPU: the long job has had two hours when the short one comes
    (tmp_path / "jobs.csv").write_text("submitSeconds,runSeconds,gpus\n0,36000,1\n7200,60,1")
    (tmp_path / "cluster.yaml").write_text(
        "nodes: [{name: a, gpus: {t: 1}}]\n"
        "virtualClusters: {default: {capacity: 100, leastAttained: {gpuHours: [1]}}}"
    )

    def ends(*more: str) -> list[str]:
        simulate("--jobs", str(tmp_path / "fared.csv"), *more)
        return [line.split(",")[4] for line in (tmp_path / "fared.csv").read_text().splitlines()[1:]]

    # (it has ten seconds to write one)
    assert ends("--checkpoints") == ["36070.000", "7270.000"]
    assert ends("--checkpoints", "--grace", "0") == ["36060.000", "7260.000"]
    assert ends() == ["36000.000", "36060.000"]


#: a long job comes first and a short one a second later; one fits at a time
TWO_JOBS = """job,submitSeconds,runSeconds,maxRunSeconds,tasks,gpus
runs,0,100,100,1,4
long,1,1000,1000,1,4
short,2,10,10,1,4
"""
ONE_MACHINE = """
nodes: [{name: a, gpus: {t: 4}}]
virtualClusters: {default: {capacity: 100, shorterFirst: 100}}
"""


def test_policies_are_compared_in_place_of_what_the_file_says(simulate: Simulate, tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(ONE_MACHINE)
    (tmp_path / "two.csv").write_text(TWO_JOBS)
    run = partial(simulate, trace="two.csv", cluster="one.yaml")
    in_order = round((100 + 1099 + 1108) / 3, 3)
    shorter = round((100 + 1109 + 108) / 3, 3)

    assert json.loads(run("--json")[1])["completionSeconds"]["mean"] == shorter
    assert json.loads(run("--json", "--policy", "fifo")[1])["completionSeconds"]["mean"] == in_order

    words = ("--policy", "fifo", "shorterFirst", "shorterFirst: 20", "shortestRemaining")
    said = run(*words, "--json")[1]
    found = json.loads(said[said.index("{") : said.rindex("}") + 1])["policies"]
    means = {name: one["completionSeconds"]["mean"] for name, one in found.items()}
    assert means == {
        "fifo": in_order,
        "shorterFirst": shorter,
        "shorterFirst: 20": shorter,
        "shortestRemaining": shorter,
    }
    code, table = run(*words)
    assert code == 0
    assert [line.split()[:2] for line in table.splitlines() if line.startswith("fifo  ")] == [["fifo", "3"]]
    assert any(line.startswith("shorterFirst: 20 ") for line in table.splitlines())


def test_what_is_no_policy_is_refused_with_those_that_there_are(simulate: Simulate) -> None:
    code, said = simulate("--policy", "lifo")
    assert code != 0
    assert "lifo is no policy: " in said
    assert "fifo or one of shorterFirst, fairShare, leastAttained, shortestRemaining" in said


def test_a_picture_is_drawn_of_one_policy_only(simulate: Simulate, tmp_path: Path) -> None:
    code, said = simulate("--policy", "fifo", "shorterFirst", "--plot", str(tmp_path / "x.svg"))
    assert code != 0
    assert "are for one policy" in said
    assert not (tmp_path / "x.svg").exists()
