"""What stands behind `--` is nobody's but the command's."""

from __future__ import annotations

import pytest

from pai_scheduler.client.cli.parser import make_parser


@pytest.mark.parametrize(
    ("line", "task", "words"),
    [
        ("exec x -- ls -l --all -t", None, ["ls", "-l", "--all", "-t"]),
        ("exec x main-0 -- a -- b", "main-0", ["a", "--", "b"]),
        ("ssh x", None, []),
        ("ssh x main-0", "main-0", []),
        ("ssh x --", None, []),
        ("--json exec --url u x -- --url v", None, ["--url", "v"]),
    ],
)
def test_a_command_is_taken_as_it_is(line: str, task: str | None, words: list[str]) -> None:
    found = make_parser("en").parse_args(line.split())
    assert (found.name, found.task, found.words) == ("x", task, words)


@pytest.mark.parametrize("line", ["exec x", "exec x main-0 ls", "exec x --", "ssh x main-0 ls -- y"])
def test_a_command_is_wanted_behind_two_dashes(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        make_parser("zh_CN").parse_args(line.split())
    assert "请在命令前写上 --" in capsys.readouterr().err


def test_other_commands_have_two_dashes_as_ever() -> None:
    assert make_parser("en").parse_args(["fs", "cat", "--", "-x"]).paths == ["-x"]
    assert make_parser("en").parse_args(["cp", "--", "-x", "y:"]).paths == ["-x", "y:"]


def test_a_port_may_stand_where_a_task_may() -> None:
    found = make_parser("en").parse_args(["port-forward", "x", "8888"])
    assert (found.task, found.ports) == (None, ["8888"])
    found = make_parser("en").parse_args(["port-forward", "x", "8888", "http"])
    assert (found.task, found.ports) == ("8888", ["http"])


def test_help_says_what_a_path_and_a_port_are(capsys: pytest.CaptureFixture[str]) -> None:
    for command, text in (("cp", "NAME/worker-0:path"), ("port-forward", "8080:http")):
        with pytest.raises(SystemExit):
            make_parser("en").parse_args([command, "--help"])
        assert text in capsys.readouterr().out
