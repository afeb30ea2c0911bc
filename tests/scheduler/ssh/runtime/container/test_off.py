"""A runtime that cannot start says why, and the command does not notice; nor does it of one that can."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pai_scheduler.ssh.task_files import SERVER_CONFIG
from tests.scheduler.ssh.runtime.container.boxes import (
    Box,
    Boxes,
    Setting,
    docker_exec,
    eventually,
    listens,
    output,
    wait,
)
from tests.testbed.docker import client
from tests.testbed.images import DEBIAN
from tests.testbed.odd_images import NAMELESS

#: Writes to both, and ends by a code of its own when it is told to, by a signal or a file.
COMMAND = """
trap 'echo ended; exit 9' TERM
echo out; echo err >&2
until [ -e /pai/go ]; do sleep 0.05; done
exit 3
"""


def start(boxes: Boxes, files: Mapping[str, bytes] | None = None, **host: object) -> Box:
    return boxes.make({"one": Setting(DEBIAN, COMMAND, host)}, files=files)["one"]


def is_untouched(box: Box) -> None:
    """Check that the command wrote what it writes, and ended as it ends."""
    (box.work / "go").touch()
    assert wait(box) == 3
    assert output(box) == (b"out\n", b"err\n")


def ends_with(box: Box, reason: str) -> None:
    """Check that there is no server for this reason, and nothing left of the attempt, and a command."""
    eventually(lambda: box.status() == reason)
    eventually(lambda: not box.running("boot session"))
    assert not listens(box.address)
    is_untouched(box)


def test_ssh_is_off_without_its_files(more_boxes: Boxes) -> None:
    ends_with(start(more_boxes, files={"something": b"else"}), "no-files ssh_port")


def test_ssh_is_off_without_one_of_its_files(more_boxes: Boxes) -> None:
    ends_with(start(more_boxes, files={"ssh_port": b"10022\n"}), "no-files ssh_identity")


@pytest.mark.usefixtures("odd")
def test_ssh_is_off_where_nothing_can_be_written(more_boxes: Boxes) -> None:
    nowhere = {"ReadonlyRootfs": True, "Tmpfs": {}, "IpcMode": "none"}
    ends_with(more_boxes.make({"one": Setting(NAMELESS, COMMAND, nowhere)})["one"], "nothing-writable")


def test_ssh_is_off_where_the_server_may_not_drop_privileges(more_boxes: Boxes) -> None:
    ends_with(start(more_boxes, CapDrop=["ALL"]), "no-privileges")


def test_ssh_is_off_where_the_server_lacks_its_folder_for_privilege_separation(more_boxes: Boxes) -> None:
    box = start(more_boxes, ReadonlyRootfs=True, Tmpfs={"/run/pai": "mode=1777"})
    ends_with(box, "no-folder /run/sshd")


def test_ssh_is_off_with_settings_that_the_server_refuses(
    more_boxes: Boxes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_scheduler.ssh.task_files._server_config", lambda _: "Nonsense yes\n")
    box = start(more_boxes)
    state = "/run/pai/ssh"
    ends_with(box, f"sshd {state}/{SERVER_CONFIG}: terminating, 1 bad configuration options")


def test_ssh_is_off_where_another_program_has_the_port(more_boxes: Boxes) -> None:
    box = start(more_boxes)
    eventually(lambda: listens(box.address))
    docker_exec(box, "/opt/pai/boot", "session")  # a second one finds the first
    eventually(lambda: box.status() == "port-taken 10022")
    is_untouched(box)


@pytest.mark.parametrize(
    ("tmpfs", "place"),
    [({"/run/sshd": "mode=755"}, "/dev/shm"), ({}, "/run")],  # noqa: S108 - not ours
)
def test_it_keeps_its_things_in_memory_or_where_it_may(
    more_boxes: Boxes, tmpfs: Mapping[str, str], place: str
) -> None:
    box = start(more_boxes, ReadonlyRootfs="/run/sshd" in tmpfs, Tmpfs=tmpfs)
    eventually(lambda: listens(box.address))
    assert box.ssh(f"stat -c '%a %u' {place}/pai/ssh").stdout == "700 0\n"
    assert box.status() == ""
    is_untouched(box)


def test_the_command_gets_the_signals_and_ends_the_task_with_sessions_and_all(more_boxes: Boxes) -> None:
    box = start(more_boxes)
    eventually(lambda: listens(box.address))
    session = box.start_ssh("echo up; sleep 1000")
    assert session.stdout is not None
    assert session.stdout.readline() == "up\n"
    with client(box.docker_host) as docker:
        docker.api.kill(box.id, "TERM")
    assert wait(box) == 9
    assert output(box)[0] == b"out\nended\n"
    session.communicate(timeout=60)


def test_the_command_has_no_child_and_no_open_file_that_it_did_not_make(more_boxes: Boxes) -> None:
    # (no pipe of the shell's own, of which it has an end more for a moment)
    look = "ls /proc/$$/fd; wait; cat /proc/$$/task/*/children"
    plain = Boxes(more_boxes.docker_host, None, more_boxes.folder / "plain")
    try:
        boxes = [maker.make({"one": Setting(DEBIAN, look)})["one"] for maker in (plain, more_boxes)]
        assert [wait(box) for box in boxes] == [0, 0]
        assert output(boxes[0]) == output(boxes[1])
    finally:
        plain.remove()
