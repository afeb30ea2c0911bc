"""What a server is told of the service that its profile names."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from pai_spawner.messages import Translated
from pai_spawner.options import HubLimits, ProfileService
from pai_spawner.profiles import InvalidProfiles, read_profiles

POLICY = HubLimits({"Notebook": "pai/notebook:1"})


def told(**service: Any) -> dict[str, Any]:
    """What the server's extension is told."""
    (argument,) = ProfileService.read(service, Translated("Board")).arguments("en")
    option, _, literal = argument.partition("=")
    assert option == "--PAIExtension.service"
    return dict(ast.literal_eval(literal))


def test_the_server_is_told_what_the_profile_says() -> None:
    command = ["board", "--port={port}", "--prefix={base_url}"]
    assert told(command=command, strip_prefix=False, start_seconds=5, title="Curves") == {
        "title": "Curves",
        "command": command,
        "strip_prefix": False,
        "start_seconds": 5,
    }


def test_what_a_profile_leaves_out_is_as_usual() -> None:
    assert told(command=["a", "{port}"]) == {
        "title": "Board",
        "command": ["a", "{port}"],
        "strip_prefix": True,
        "start_seconds": 60,
    }


def test_quotes_and_braces_come_through_as_they_are() -> None:
    word = """{"a": '{b}', {{port}}} 中文 $HOME \\"""
    assert told(command=["program", "{port}", word])["command"][2] == word


def test_the_server_is_told_the_title_in_the_language_of_who_starts_it() -> None:
    raw = {"command": ["a", "{port}"], "title": {"en": "Curves", "zh-CN": "曲线"}}
    service = ProfileService.read(raw, Translated("Board"))
    assert ["曲线" in service.arguments(locale)[0] for locale in ("zh_CN", "en")] == [True, False]
    # as the Hub keeps it
    assert Translated.read(service.title.as_json()) == service.title


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
    assert board.service == ProfileService(Translated.read("Board"), ("a", "{port}"))
    assert plain.service is None
