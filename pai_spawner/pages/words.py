"""JupyterHub's own words in another language: in its templates when they are loaded, in messages when shown.

JupyterHub has no translations. Its templates are left as they are: each run of words between two tags, and
each attribute that people read, is looked up in the catalogue beside this module (`locale/zh_CN.po`) when
Jinja loads the template. So a newer JupyterHub's pages work as they are; what they say in new words stays
English until it is added.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib import resources

from babel.messages.pofile import read_po

from pai_scheduler.i18n import LOCALES

PACKAGE = "pai_spawner.pages"
#: Looks a run of words up: what to write for it in the template.
Replace = Callable[[str], str]

_PARTS = re.compile(
    r"(?P<comment>\{#.*?#\}|<!--.*?-->)"
    r"|(?P<statement>\{%.*?%\})"
    r"|(?P<expression>\{\{.*?\}\})"
    r"|(?P<script><(?P<kind>script|style)\b.*?</(?P=kind)>)"
    r"|(?P<tag></?[a-zA-Z!](?:\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}|[^>])*>)"
    r"|(?P<text>(?:(?!\{[{%#])[^<])+|[<{])",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"""(?<=\s)(title|placeholder|aria-label|alt|value)=(["'])(.*?)\2""", re.DOTALL)
_STRING = re.compile(r"""(["'])((?:(?!\1)[^\\\n])*)\1""")
_EXPRESSION = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_LETTER = re.compile(r"[A-Za-z]{2}")
_VALUE = re.compile(r"\{(\w+)\}")
_HTML_TAG = re.compile(r"(<[^>]*>)")

#: Expressions of JupyterHub's templates whose values are words of its own.
SHOWN = frozenset(
    {
        "title", "btn_label", "login_error", "message", "status_message", "failed_message", "error_message",
        "scope_info['description']", "token.note", "client['description']",
        "announcement | safe", "token_expires_in_options_html | safe",
        "message_html | safe", "extra_error_html | safe",
    }
)  # fmt: skip


def rewrite(source: str, replace: Replace) -> str:
    """Put what `replace` gives for each run of words into a template of JupyterHub's."""
    written, run = [], ""
    for kind, part in _parts(source):
        if kind in ("text", "expression"):
            run += part
            continue
        written.append(_rewrite_run(run, replace))
        run = ""
        if kind == "tag":
            part = _ATTRIBUTE.sub(partial(_rewrite_attribute, replace=replace), part)
        elif kind == "script":
            part = _STRING.sub(partial(_rewrite_string, replace=replace), part)
        written.append(part)
    written.append(_rewrite_run(run, replace))
    return "".join(written)


def words_of(source: str) -> list[str]:
    """List the runs of words of a template; of its scripts only those that the catalogue has."""
    found: list[str] = []

    def note(words: str) -> str:
        found.append(words)
        return words

    rewrite(source, note)
    return found


def translated_template(source: str) -> str:
    """Write a template of JupyterHub's so that Jinja chooses the language when a page is made."""
    return rewrite(source, _in_each_language).replace('<html lang="en">', '<html lang="{{ hub_lang() }}">')


def _in_each_language(words: str) -> str:
    known = [(locale, catalogue(locale)[words]) for locale in LOCALES if words in catalogue(locale)]
    choices = "".join(f'{{% if hub_locale() == "{locale}" %}}{text}{{% else %}}' for locale, text in known)
    return choices + words + "{% endif %}" * len(known)


def translated_words(text: str, locale: str) -> str:
    """Put a message of JupyterHub's, plain or with tags, into a language; unknown words stay as they are."""
    return "".join(
        part if part.startswith("<") else _translated_plain(part, locale) for part in _HTML_TAG.split(text)
    )


def _parts(source: str) -> Iterator[tuple[str, str]]:
    for found in _PARTS.finditer(source):
        kind = found.lastgroup or "text"
        yield ("script" if kind == "kind" else kind), found.group()


def _rewrite_run(run: str, replace: Replace) -> str:
    words = run.strip()
    if _LETTER.search(_EXPRESSION.sub("", words)):
        before, after = run[: len(run) - len(run.lstrip())], run[len(run.rstrip()) :]
        run = before + replace(_normal(words)) + after
    return _EXPRESSION.sub(_rewrite_expression, run)


def _rewrite_expression(found: re.Match[str]) -> str:
    expression = found.group()[2:-2].strip("-").strip()
    if expression not in SHOWN:
        return found.group()
    value, *filters = expression.split(" | ")
    return f"{{{{ {' | '.join([f'hub_words({value})', *filters])} }}}}"


def _rewrite_attribute(found: re.Match[str], replace: Replace) -> str:
    name, quote, value = found.groups()
    # a value is for the machine, but for a button's
    if "{" in value or not _LETTER.search(value) or (name == "value" and value.islower()):
        return found.group()
    return f"{name}={quote}{replace(_normal(value))}{quote}"


def _rewrite_string(found: re.Match[str], replace: Replace) -> str:
    quote, text = found.groups()
    if " " not in text or not any(text in catalogue(locale) for locale in LOCALES):
        return found.group()
    return f"{quote}{replace(text)}{quote}"


def _normal(words: str) -> str:
    return " ".join(words.split())


def _translated_plain(text: str, locale: str) -> str:
    words = text.strip()
    if not words:
        return text
    return text.replace(words, _lookup(_normal(words), locale) or words)


def _lookup(words: str, locale: str) -> str | None:
    if (known := catalogue(locale).get(words)) is not None:
        return known
    for pattern, translation in _patterns(locale):
        if found := pattern.fullmatch(words):
            values = {name: _lookup(value, locale) or value for name, value in found.groupdict().items()}
            return translation.format(**values)
    return None


@cache
def catalogue(locale: str) -> Mapping[str, str]:
    """Return JupyterHub's words in a language, as they stand in its templates; empty for English."""
    file = resources.files(PACKAGE) / "locale" / f"{locale}.po"
    if not file.is_file():
        return {}
    with file.open("rb") as stream:
        entries = read_po(stream, locale)
    return {str(entry.id): str(entry.string) for entry in entries if entry.id and entry.string}


@cache
def _patterns(locale: str) -> list[tuple[re.Pattern[str], str]]:
    """Return the messages with values in them (`{name}`), as what they look like when they are filled in."""
    found = []
    for words, translation in catalogue(locale).items():
        if "{{" in words or not _VALUE.search(words):
            continue
        texts = _VALUE.split(words)
        pattern = "".join(
            f"(?P<{text}>.+?)" if position % 2 else re.escape(text) for position, text in enumerate(texts)
        )
        found.append((re.compile(pattern, re.DOTALL), translation))
    return found
