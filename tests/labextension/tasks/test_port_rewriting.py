"""What changes between a browser and an application under a prefix: headers, cookies, addresses."""

from __future__ import annotations

import pytest

from pai_labextension.tasks.rewriting import (
    PortPrefix,
    location,
    own_cookies,
    request_headers,
    request_query,
    response_headers,
    set_cookies,
)

PREFIX = "/user/alice/pai/ports/alice/train/worker-0/jupyter"
PLACE = PortPrefix(PREFIX, "https://hub.example", 8888)
WHOLE = PortPrefix(PREFIX.replace("/ports/", "/ports-absolute/"), "https://hub.example", 8888, absolute=True)
OWN = "username-hub-example"


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        ("/tree", f"{PREFIX}/tree"),
        ("/", f"{PREFIX}/"),
        ("http://localhost:8888/tree?a#b", f"{PREFIX}/tree?a#b"),
        ("https://127.0.0.1:8888", f"{PREFIX}/"),
        ("http://localhost:8888?a", f"{PREFIX}/?a"),
        (f"{PREFIX}/tree", f"{PREFIX}/tree"),
        ("tree", "tree"),
        ("../x", "../x"),
        ("//evil.example/", "//evil.example/"),
        ("http://localhost:88889/", "http://localhost:88889/"),
        ("https://example.com/x", "https://example.com/x"),
    ],
)
def test_an_address_of_the_applications_own_is_put_under_its_prefix(said, seen):
    assert location(PLACE, said) == seen


def test_an_application_that_knows_its_prefix_is_believed_but_for_the_origin():
    assert location(WHOLE, f"http://localhost:8888{WHOLE.prefix}/lab") == f"{WHOLE.prefix}/lab"
    assert location(WHOLE, f"{WHOLE.prefix}/lab") == f"{WHOLE.prefix}/lab"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("a=1", ["a=1"]),
        ("a=1; Path=/", [f"a=1; Path={PREFIX}/"]),
        ("a=1; path = /x ;Domain=.example", [f"a=1; Path={PREFIX}/x"]),
        ("a=1; Path=/user/alice", [f"a=1; Path={PREFIX}/user/alice"]),
        (f"a=1; Path={PREFIX}2", [f"a=1; Path={PREFIX}{PREFIX}2"]),
        ("a=1; Path=relative", [f"a=1; Path={PREFIX}/"]),
        ("jupyterhub-session-id=x", []),
        ("JupyterHub-user-alice=x", []),
        ("__Host-jupyterhub-user=x", []),
        ("=jupyterhub-session-id=x", []),
        (f"{OWN}=x", []),
        ("username-localhost-9999=x", []),
        ("username-localhost-8888=x", ["username-localhost-8888=x"]),
        ("pai-port-xsrf=x", []),
        ("_xsrf=x; HttpOnly", ["_xsrf=x; HttpOnly", "pai-port-xsrf=x; HttpOnly"]),
    ],
)
def test_a_cookie_stays_within_the_prefix_and_passes_for_nobody_elses(said, kept):
    assert set_cookies(PLACE, said, OWN) == kept


def test_the_cookie_of_an_application_that_knows_its_prefix_may_not_leave_it_either():
    for path in ("/", "/user/alice/", f"{WHOLE.prefix}2"):
        assert set_cookies(WHOLE, f"a=1; Path={path}", OWN) == [f"a=1; Path={WHOLE.prefix}/"]
    assert set_cookies(WHOLE, f"a=1; Path={WHOLE.prefix}/lab", OWN) == [f"a=1; Path={WHOLE.prefix}/lab"]


def test_of_two_xsrf_cookies_the_applications_own_is_passed_and_alone_the_servers_is_not():
    line = f"_xsrf=inner; pai-port-xsrf=inner; _xsrf=outer; {OWN}=x; jupyterhub-user-alice=x; a=1"
    assert own_cookies(PLACE, line, OWN) == "a=1; _xsrf=inner"
    assert own_cookies(PLACE, "_xsrf=outer", OWN) == ""
    assert request_headers(PLACE, [("Cookie", "_xsrf=outer")], OWN, "p") == [
        ("X-Forwarded-For", "p"),
        ("X-Forwarded-Prefix", PREFIX),
    ]


def test_a_referer_outside_the_port_is_not_passed_on():
    def referer(value: str, place: PortPrefix = PLACE) -> str | None:
        return dict(request_headers(place, [("Referer", value)], OWN, "p")).get("Referer")

    assert referer(f"https://hub.example{PREFIX}/a") == "http://localhost:8888/a"
    assert referer(f"https://hub.example{WHOLE.prefix}/a", WHOLE) == f"http://localhost:8888{WHOLE.prefix}/a"
    assert referer("https://hub.example/user/alice/lab?token=secret") is None
    assert referer("https://elsewhere.example/") is None


def test_the_servers_own_token_is_taken_out_of_a_query_that_stays_as_it_was():
    assert request_query("a=%20&token=x&b&token&c=+", without_token=True) == "a=%20&b&c=+"
    assert request_query("a=1&token=x", without_token=False) == "a=1&token=x"


def test_of_an_answer_everything_passes_but_what_is_the_origins():
    given = [
        ("Content-Type", "text/plain"),
        ("Connection", "close, X-Hop"),
        ("X-Hop", "1"),
        ("Transfer-Encoding", "chunked"),
        ("Strict-Transport-Security", "max-age=1"),
        ("Access-Control-Allow-Origin", "https://evil.example"),
        ("Refresh", "5; url=/tree"),
        ("X-Own", "1"),
        ("X-Own", "2"),
    ]
    assert response_headers(PLACE, given, OWN) == [
        ("Content-Type", "text/plain"),
        ("Refresh", f"5; url={PREFIX}/tree"),
        ("X-Own", "1"),
        ("X-Own", "2"),
    ]
