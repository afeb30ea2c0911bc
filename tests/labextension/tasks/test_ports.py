"""Which port a label means, and how a task's ports are listed."""

from __future__ import annotations

import pytest

from pai_labextension.tasks.ports import TaskPorts

PORTS = TaskPorts({"web": [1001, 1002], "web.1": [1003], "8080": [1004], "empty": [], "a.b": [1005]}, "")


@pytest.mark.parametrize(
    ("label", "number"),
    [
        ("web", 1001),
        ("web.0", 1001),
        ("web.1", 1003),
        ("web.2", None),
        ("a.b", 1005),
        ("a.b.0", 1005),
        ("8080", 1004),
        ("8081", 8081),
        ("65535", 65535),
        ("65536", None),
        ("0", None),
        ("-1", None),
        ("٣", None),
        ("web.²", None),
        ("empty", None),
        ("", None),
        ("..", None),
    ],
)
def test_a_label_is_a_port_and_so_is_a_number(label, number):
    assert PORTS.number(label) == number


def test_a_list_names_each_port_by_what_finds_it():
    ports = TaskPorts({"web": [1001, 1002], "board": [1003]}, "")
    assert ports.listed() == [("web", 1001), ("web.1", 1002), ("board", 1003)]
    assert all(ports.number(label) == port for label, port in ports.listed())
