"""What a job may ask for with `extras.notify`."""

from __future__ import annotations

from typing import Any

import pytest

from pai_scheduler.job.spec import NotifyRequest, notify_of
from pai_scheduler.job.validation import build_spec, validate
from tests.scheduler.making import make_config


def errors_of(notify: Any) -> dict[str, str]:
    config = make_config(extras={"notify": notify})
    return {error.path: str(error.message) for error in validate(config)}


@pytest.mark.parametrize(
    ("notify", "asked"),
    [
        ({"webhook": "https://hooks.lab/x?y=%20#z"}, (("end",), "https://hooks.lab/x?y=%20#z", False)),
        ({"mail": True, "on": ["failure"]}, (("failure",), "", True)),
        (
            {"webhook": "http://[::1]:80/", "mail": "ada@lab.example"},
            (("end",), "http://[::1]:80/", "ada@lab.example"),
        ),
    ],
)
def test_what_is_asked_for_is_read_with_what_counts_without_a_word(notify: Any, asked: Any) -> None:
    assert errors_of(notify) == {}
    assert build_spec(make_config(extras={"notify": notify})).notify == NotifyRequest(*asked)


@pytest.mark.parametrize(
    ("notify", "path", "said"),
    [
        ({}, "", "Say where"),
        ({"mail": False}, "", "Say where"),
        ("me", "", "must be"),
        ({"on": [], "mail": True}, ".on", "empty"),
        ({"on": ["start"], "mail": True}, ".on[0]", "must be one of"),
        ({"web": "https://a"}, ".web", "web"),
        ({"mail": 1}, ".mail", "must be"),
        ({"mail": "ada"}, ".mail", "no mail address"),
        ({"mail": "ada@lab.example\nBcc: x@y"}, ".mail", "no mail address"),
        ({"webhook": ""}, ".webhook", "empty"),
        ({"webhook": "file:///etc/passwd"}, ".webhook", "no address for a webhook"),
        ({"webhook": "https://"}, ".webhook", "no address for a webhook"),
        ({"webhook": "https://ada:secret@hooks.lab/"}, ".webhook", "no user"),
        ({"webhook": "https://hooks.lab\\@evil.example/"}, ".webhook", "no address for a webhook"),
        ({"webhook": "https://hooks.lab/ x"}, ".webhook", "no spaces"),
        ({"webhook": "https://[::1/"}, ".webhook", "no address for a webhook"),
    ],
)
def test_what_cannot_be_is_said_at_its_field(notify: Any, path: str, said: str) -> None:
    found = errors_of(notify)
    assert said in found[f"$.extras.notify{path}"]


def test_a_kept_job_that_has_something_else_under_this_name_asks_for_nothing() -> None:
    for old in ("everybody", {"email": "x"}, {"on": "end", "webhook": "https://a"}, 3, None, {"mail": 7}):
        assert notify_of({"notify": old}) is None
