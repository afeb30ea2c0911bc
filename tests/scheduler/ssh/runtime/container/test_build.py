"""The image of the runtime: what is in it, when it is built again, and that a wheel can build it."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from pai_scheduler.engine.docker.image_build import LABEL, BuildError
from pai_scheduler.ssh.runtime.container import build as builder
from pai_scheduler.ssh.runtime.container.build import RECIPE, build, context, fingerprint
from tests.testbed.docker import client


def test_whatever_decides_what_is_in_the_image_changes_its_fingerprint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = fingerprint("sha256:a")
    assert plain == fingerprint("sha256:a") != fingerprint("sha256:b")
    changed = tmp_path / "image"
    changed.mkdir()
    for path in RECIPE.rglob("*"):
        if path.is_file():
            (changed / path.relative_to(RECIPE)).parent.mkdir(exist_ok=True)
            (changed / path.relative_to(RECIPE)).write_bytes(path.read_bytes())
    monkeypatch.setattr(builder, "RECIPE", changed)
    assert fingerprint("sha256:a") == plain
    with open(changed / "scripts" / "boot", "a") as boot:
        boot.write("\n")
    assert fingerprint("sha256:a") != plain


def test_what_is_there_already_is_not_built_again(
    docker_host: str, runtime_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never() -> bytes:
        raise AssertionError("it was built again")

    monkeypatch.setattr(builder, "context", never)
    assert build("local/debian:bookworm", docker_host) == runtime_image
    with pytest.raises(AssertionError, match="built again"):
        build("local/debian:bookworm", docker_host, anew=True)


def test_a_base_image_that_cannot_be_pulled_is_one_sentence(docker_host: str) -> None:
    with pytest.raises(BuildError, match=r"127\.0\.0\.1:1/base could not be pulled: .*PAI_BASE_IMAGE"):
        build("127.0.0.1:1/base", docker_host)


def test_the_image_is_one_folder_that_needs_nothing_beside_it(docker_host: str, runtime_image: str) -> None:
    with client(docker_host) as docker:
        assert docker.images.get(runtime_image).labels[LABEL]
        made = docker.containers.create(runtime_image)
        assert made.id is not None
        try:
            raw = b"".join(docker.api.export(made.id))
        finally:
            made.remove()
    with tarfile.open(fileobj=io.BytesIO(raw)) as tar:
        files = {entry.name: entry for entry in tar if entry.isfile() and entry.size}
    assert {name for name in files if not name.startswith("opt/pai/")} <= {".dockerenv"}
    programs = {name.removeprefix("opt/pai/") for name, entry in files.items() if entry.mode & 0o111}
    assert {"boot", "status", "bin/ssh", "bin/scp", "bin/sftp", "tools/rsync", "libexec/sshd"} <= programs
    # what comes first on a task's PATH is no more than this
    assert {name for name in programs if name.startswith("bin/")} == {"bin/ssh", "bin/scp", "bin/sftp"}
    # nobody but root may change it, and nothing in it makes anybody more than they are
    assert not [name for name, entry in files.items() if entry.mode & 0o6022 or entry.uid]
    assert "licenses/openssh-server" in {name.removeprefix("opt/pai/") for name in files}


def test_a_wheel_has_the_recipe() -> None:
    root = Path(__file__).parents[5]
    packed = {file.distribution_path for file in WheelBuilder(str(root)).recurse_included_files()}
    with tarfile.open(fileobj=io.BytesIO(context())) as tar:
        inside = tar.getnames()
    assert {"Dockerfile", "scripts/boot", "scripts/collect"} <= set(inside)
    assert {f"{RECIPE.relative_to(root)}/{name}" for name in inside} <= packed
