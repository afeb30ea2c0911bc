"""What a server is told of the service that its profile names."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from pai_spawner.choices import Policy
from pai_spawner.profiles import InvalidProfiles, read_profiles
from pai_spawner.services import Service

POLICY = Policy({"Notebook": "pai/notebook:1"})


def process(**service: Any) -> dict[str, Any]:
    """What `jupyter-server-proxy` is told."""
    (argument,) = Service.read(service, "Board").arguments
    option, _, literal = argument.partition("=")
    assert option == "--ServerProxy.servers"
    ((path, told),) = ast.literal_eval(literal).items()
    assert path == "pai-service"
    return dict(told)


def test_a_command_is_told_its_port_and_its_own_address() -> None:
    told = process(command=["board", "--port={port}", "--prefix={base_url}"], strip_prefix=False)
    words = [word.format(port=4321, base_url="/user/alice/", unix_socket="") for word in told["command"]]
    assert words == ["board", "--port=4321", "--prefix=/user/alice/pai-service/"]
    assert (told["absolute_url"], told["unix_socket"], told["timeout"]) == (True, None, 60.0)
    assert told["launcher_entry"] == {"title": "Board"}


def test_a_service_may_listen_on_a_socket_instead() -> None:
    told = process(command=["code-server", "--socket={unix_socket}"], start_seconds=5, title="Code")
    assert (told["unix_socket"], told["absolute_url"], told["timeout"]) == (True, False, 5.0)
    assert told["command"][1].format(unix_socket="/run/s") == "--socket=/run/s"
    assert told["launcher_entry"] == {"title": "Code"}


def test_braces_and_quotes_that_are_no_placeholder_stay_as_they_are() -> None:
    word = """{"a": '{b}', {{port}}} 中文 $HOME"""
    told = process(command=["program", "{port}", word])
    assert told["command"][2].format(port=1) == word.replace("{port}", "1")


@pytest.mark.parametrize(
    ("service", "says"),
    [
        ({"command": ["board"]}, "[0].service.command: it must say where the program listens, with {port}"),
        ({}, "[0].service: “command” is missing."),
        ({"command": "board --port {port}"}, "it must be a list of the program and its arguments"),
        ({"command": ["a{port}"], "strip_prefx": True}, "did you mean “strip_prefix”?"),
        ({"command": ["a{port}"], "start_seconds": 0}, "it must be seconds that it may take until"),
    ],
)
def test_a_service_that_is_wrong_is_said_with_its_place(service: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidProfiles) as caught:
        read_profiles([{"display_name": "Board", "service": service}], POLICY)
    assert says in str(caught.value)


def test_a_profile_has_its_service_and_others_have_none() -> None:
    board, plain = read_profiles(
        [{"display_name": "Board", "service": {"command": ["a", "{port}"]}}, {"display_name": "Plain"}],
        POLICY,
    )
    assert board.service == Service("Board", ("a", "{port}"))
    assert plain.service is None
