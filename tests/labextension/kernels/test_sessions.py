"""Which notebook has which kernel, in a file that outlives the notebook server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from pai_labextension.kernels.manager import JobKernelsManager, JobSessionManager


def kernels_of(server: str, **jobs: object) -> JobKernelsManager:
    """Return a notebook server's kernels: those beside it (None) and those that are jobs."""
    manager = JobKernelsManager()
    manager.pai_settings.server = server
    for name, job in jobs.items():
        manager._kernels[name] = SimpleNamespace(provisioner=SimpleNamespace(job=job))
    return manager


Begin = Callable[..., JobSessionManager]


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Begin:
    """Begin the sessions of a notebook server, one after the other, with the kernels it has."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path))

    def make(server: str = "/user/alice/", **kernels: object) -> JobSessionManager:
        return JobSessionManager(kernel_manager=kernels_of(server, **kernels))

    return make


async def save(sessions: JobSessionManager, path: str, kernel: str) -> None:
    values = {"path": path, "name": path, "type": "notebook", "kernel_id": kernel}
    # without the answer, which wants a whole kernel
    sessions.cursor.execute(
        "INSERT INTO session VALUES (?,?,?,?,?)", (f"session-of-{path}", *values.values())
    )
    sessions._write()


def rows(sessions: JobSessionManager) -> dict[str, str]:
    found = sessions.cursor.execute("SELECT path, kernel_id FROM session").fetchall()
    return {row["path"]: row["kernel_id"] for row in found}


async def test_a_notebook_has_its_kernel_again_if_that_is_a_job_that_runs(begin: Begin) -> None:
    first = begin(job="kernel_1", gone="kernel_2", local=None)
    for path, kernel in (("a.ipynb", "job"), ("b.ipynb", "gone"), ("c.ipynb", "local")):
        await save(first, path, kernel)
    second = begin(job="kernel_1", local=None)
    await second.restore()
    assert rows(second) == {"a.ipynb": "job"}


async def test_a_notebook_that_has_another_kernel_by_now_keeps_it(begin: Begin) -> None:
    await save(begin(job="kernel_1"), "a.ipynb", "job")
    second = begin(job="kernel_1", new="kernel_3")
    await save(second, "a.ipynb", "new")
    await second.restore()
    assert rows(second) == {"a.ipynb": "new"}


async def test_two_servers_of_a_person_have_files_of_their_own(begin: Begin) -> None:
    await save(begin(job="kernel_1"), "a.ipynb", "job")
    other = begin("/user/alice/second/", job="kernel_1")
    await other.restore()
    assert rows(other) == {}


async def test_where_no_kernel_is_a_job_nothing_is_written(begin: Begin, tmp_path: Path) -> None:
    await save(begin(local=None), "a.ipynb", "local")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("broken", ["", "{", "7", "[5, {}]", json.dumps([{"path": "a", "kernel_id": 7}])])
async def test_a_file_that_is_none_of_ours_restores_nothing(begin: Begin, broken: str) -> None:
    first = begin(job="kernel_1")
    await save(first, "a.ipynb", "job")
    first._file.write_text(broken)
    second = begin(job="kernel_1")
    await second.restore()
    assert rows(second) == {}


async def test_a_disk_that_takes_no_file_is_a_warning(begin: Begin, tmp_path: Path) -> None:
    (tmp_path / "pai-kernels").write_text("in the way")
    await save(begin(job="kernel_1"), "a.ipynb", "job")
    assert (tmp_path / "pai-kernels").read_text() == "in the way"
