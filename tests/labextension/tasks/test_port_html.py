"""Addresses in an application's pages: which are put under its prefix, and which text is left alone."""

from __future__ import annotations

import pytest

from pai_labextension.tasks.rewriting import HtmlRewriter, PortPrefix

P = "/user/alice/pai/ports/alice/train/worker-0/jupyter"
PLACE = PortPrefix(P, "https://hub.example", 8888)


def rewritten(text: str, size: int | None = None) -> str:
    rewriter, data = HtmlRewriter(PLACE), text.encode()
    step = size or len(data) or 1
    pieces = [rewriter.feed(data[at : at + step]) for at in range(0, len(data), step)]
    return (b"".join(pieces) + rewriter.end()).decode()


@pytest.mark.parametrize(
    ("said", "seen"),
    [
        ('<a href="/tree">', f'<a href="{P}/tree">'),
        ("<form action='/login?next=/'>", f"<form action='{P}/login?next=/'>"),
        ("<link href=/static/style.css>", f"<link href={P}/static/style.css>"),
        ('<body data-base-url="/" data-ws-url="">', f'<body data-base-url="{P}/" data-ws-url="">'),
        (
            '<meta http-equiv="refresh" content="0; url=/tree">',
            f'<meta http-equiv="refresh" content="0; url={P}/tree">',
        ),
        ('{"baseUrl": "/", "wsUrl": ""}', f'{{"baseUrl": "{P}/", "wsUrl": ""}}'),
        ('"fullStaticUrl": "/static/lab"', f'"fullStaticUrl": "{P}/static/lab"'),
        ("require.config({baseUrl: '/static/',", f"require.config({{baseUrl: '{P}/static/',"),
        ("custom : '/custom',", f"custom : '{P}/custom',"),
        ('import("/assets/index-1.js")', f'import("{P}/assets/index-1.js")'),
        ("url(/img/logo.svg)", f"url({P}/img/logo.svg)"),
        ('"mathjaxUrl": "/static/MathJax.js?config=x"', f'"mathjaxUrl": "{P}/static/MathJax.js?config=x"'),
        ('"root":"http://localhost:8888"', f'"root":"https://hub.example{P}"'),
        ('"ws://127.0.0.1:8888/ws"', f'"wss://hub.example{P}/ws"'),
        (r'"http:\/\/localhost:8888\/a"', r'"https:\/\/hub.example' + P.replace("/", r"\/") + r'\/a"'),
    ],
)
def test_an_address_is_put_under_the_prefix(said, seen):
    assert rewritten(said) == seen


@pytest.mark.parametrize(
    "text",
    [
        '<a href="//cdn.example/x.js"><a href="https://example.com/"><a href="x"><a href="#/x">',
        "path.split('/').join(\"/\")",
        '{"appUrl": "/lab", "settingsUrl": "/lab/api/settings", "notebookPath": "/a.ipynb"}',
        "if (a </b>/.test(c)) { x = '/home/alice'; }",
        "<p>and/or /etc/passwd http://localhost:88889/ http://localhost:8080/</p>",
        f'<a href="{P}/tree"> "baseUrl": "{P}/"',
    ],
)
def test_other_text_stays_as_it_is(text):
    assert rewritten(text) == text


def test_wherever_it_is_cut_a_page_comes_out_the_same():
    page = (
        '<!DOCTYPE html><body\ndata-base-url="/">\n<script>{"baseUrl": "/", "x": "汉"}</script>\n'
        '<img src="/a.png"><a href="/b">x</a>'
    )
    whole = rewritten(page)
    assert whole.count(P) == 4
    for size in (1, 2, 3, 7, 50):
        assert rewritten(page, size) == whole


def test_a_page_comes_while_it_is_written_and_bytes_that_are_no_text_survive():
    rewriter = HtmlRewriter(PLACE)
    assert rewriter.feed(b"<h1>now</h1><p>la") == b"<h1>now</h1><p>"
    assert rewriter.feed(b"ter\xff\x00") == b""
    assert rewriter.end() == b"later\xff\x00"
    assert len(rewriter.feed(b"x" * 1_000_000)) == 1_000_000
