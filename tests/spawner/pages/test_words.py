"""JupyterHub's own words: found in its templates and messages, and all of them translated."""

from __future__ import annotations

import ast
import re
from functools import cache
from http.client import responses
from pathlib import Path

import jupyterhub
import pytest
from jupyterhub._data import DATA_FILES_PATH

from pai_scheduler.i18n import LOCALES
from pai_spawner.pages import TEMPLATES
from pai_spawner.pages.words import catalogue, translated_template, translated_words, words_of

OTHERS = [locale for locale in LOCALES if locale != "en"]
JUPYTERHUBS = Path(DATA_FILES_PATH) / "templates"
#: Names, which are the same in every language.
NAMES = {"JupyterHub", "JupyterHub {{ server_version }}"}
REPOSITORY = Path(__file__).parents[3]


def replaced(template: Path) -> bool:
    """Return whether ours stands in its place, and shows nothing of it."""
    ours = TEMPLATES / template.name
    return ours.exists() and f'extends "templates/{template.name}"' not in ours.read_text()


@cache
def said_in_templates() -> frozenset[str]:
    files = [file for file in sorted(JUPYTERHUBS.glob("*.html")) if not replaced(file)]
    return frozenset(words for file in files for words in words_of(file.read_text()))


@cache
def said_elsewhere() -> str:
    """Return every text of JupyterHub's program, of its administration page, and of our configuration."""
    texts = list(responses.values())
    config = REPOSITORY / "hub_config/jupyterhub_config.py"
    for file in [*Path(jupyterhub.__file__).parent.rglob("*.py"), config]:
        nodes = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Constant)]
        texts += [re.sub(" +", " ", node.value) for node in nodes if isinstance(node.value, str)]
    scripts = Path(DATA_FILES_PATH) / "static/js"
    files = [scripts / "admin-react.js", scripts / "token.js", JUPYTERHUBS / "page.html"]
    return "\n".join([*texts, *(file.read_text() for file in files)])


def values_of(words: str) -> list[str]:
    """List what stands in words for a value: an expression of a template, or a name in braces."""
    return sorted(re.findall(r"\{\{.*?\}\}", words) or re.findall(r"\{\w+\}", words))


@pytest.mark.parametrize("locale", OTHERS)
def test_every_word_of_jupyterhubs_pages_is_translated(locale: str) -> None:
    # a newer JupyterHub says something new: add it to the catalogue
    assert said_in_templates() - NAMES - catalogue(locale).keys() == set()


@pytest.mark.parametrize("locale", OTHERS)
def test_nothing_is_translated_that_jupyterhub_does_not_say(locale: str) -> None:
    unsaid = [
        words
        for words in catalogue(locale).keys() - said_in_templates()
        if not all(part in said_elsewhere() for part in re.split(r"\{\w+\}", words))
    ]
    assert unsaid == []


@pytest.mark.parametrize("locale", OTHERS)
def test_a_translation_has_the_same_values(locale: str) -> None:
    for words, translation in catalogue(locale).items():
        assert values_of(translation) == values_of(words)


def test_words_are_what_stands_between_tags_and_in_attributes_that_people_read() -> None:
    source = """{# no #}<h1 class="no">Server
        options</h1>{% if yes %}<input value="no" placeholder="a name"><input type="submit" value='Sign in'>
        Hello {{ user.name }}, <a href="/no">go on</a>{% endif %}<script>const no = "not one";</script>"""
    assert words_of(source) == ["Server options", "a name", "Sign in", "Hello {{ user.name }},", "go on"]


def test_a_template_has_each_language_in_it() -> None:
    source = '<html lang="en"><b title="Home">API Tokens</b> {{ x }} {{ message }}{{ announcement | safe }}'
    assert translated_template(source) == (
        '<html lang="{{ hub_lang() }}">'
        '<b title="{% if hub_locale() == "zh_CN" %}主页{% else %}Home{% endif %}">'
        '{% if hub_locale() == "zh_CN" %}API 令牌{% else %}API Tokens{% endif %}</b> {{ x }} '
        "{{ hub_words(message) }}{{ hub_words(announcement) | safe }}"
    )


def test_a_template_without_known_words_stays_as_it_is() -> None:
    source = "<p>{% if a > 1 %}Something else{% endif %}</p><style>p { color: red }</style>"
    assert translated_template(source) == source


@pytest.mark.parametrize(
    ("message", "translation"),
    [
        ("Invalid username or password", "用户名或密码不正确"),
        ("No such user: bob", "没有这个用户：bob"),
        ("Too many users trying to log in right now. Try again in 3 minutes.", "3 分钟"),
        ('You can try restarting your server from the <a href="/hub/home">home page</a>.', ">主页</a>"),
        ('<option value="3600">1 Hour</option>', '<option value="3600">1 小时</option>'),
        ("Something that nobody knows", "Something that nobody knows"),
        ("", ""),
    ],
)
def test_messages_are_translated_with_their_values(message: str, translation: str) -> None:
    assert translation in translated_words(message, "zh_CN")
    assert translated_words(message, "en") == message
