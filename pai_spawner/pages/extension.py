"""Variables of the Hub's templates: the reader's language, and what is known of a person's servers."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from http.client import responses
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, pass_context
from jinja2.ext import Extension
from jinja2.runtime import Context
from jupyterhub._data import DATA_FILES_PATH
from jupyterhub.app import JupyterHub
from markupsafe import Markup

from pai_scheduler.i18n import choose_locale, translate, translate_counted

from .servers import ServerView, view_of, views_of
from .words import catalogue, translated_template, translated_words

_JUPYTERHUB = Path(DATA_FILES_PATH) / "templates"
#: Whose sentences the templates beside this module are.
_SENTENCES = "pai_spawner"
_HERE = Path(__file__).parent
#: Where the console's tokens, bar and mark are: a wheel has them here (`hatch_build.py`), a checkout there.
_STYLES = (_HERE / "style", _HERE.parents[1] / "pai_labextension" / "ui" / "style")


class HubPages(Extension):
    """Jinja extension for JupyterHub (`c.JupyterHub.jinja_environment_options`).

    It translates JupyterHub's own templates when they are loaded, and gives all templates `t` and `counted`
    (sentences in the reader's language), `hub_locale` ("zh_CN"), `hub_lang` ("zh-CN"), `hub_words` (a message
    of JupyterHub's in the reader's language), `hub_dictionary` (all of its words), `hub_status` (what a
    status code means), `iso` (a time in ms), `has_jupyterhubs_logo` (whether nobody has given the Hub a logo
    of their own), `frame_style` and `mark_address` (the console's tokens, its bar and its mark),
    `chosen_server` (the name of the server that the page for choosing is about), and `pai_servers` and
    `pai_server` (`ServerView`).
    """

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        environment.globals.update(
            t=_t,
            counted=_counted,
            hub_locale=hub_locale,
            hub_lang=_hub_lang,
            hub_words=_hub_words,
            hub_dictionary=_hub_dictionary,
            hub_status=_hub_status,
            iso=_iso,
            has_jupyterhubs_logo=_has_jupyterhubs_logo,
            frame_style=_frame_style,
            mark_address=_mark_address,
            chosen_server=_chosen_server,
            pai_servers=_pai_servers,
            pai_server=_pai_server,
        )

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:  # noqa: ARG002
        """Return the template's source as it is compiled."""
        own = filename is not None and Path(filename).parent == _JUPYTERHUB
        return translated_template(source) if own else source


@pass_context
def hub_locale(context: Context) -> str:
    """Return the locale that the reader's browser asks for."""
    handler = _handler(context)
    return choose_locale(handler.request.headers.get("Accept-Language", "")) if handler else "en"


def _handler(context: Context) -> Any:
    # JupyterHub gives templates no request, but a method of the handler that has it
    return getattr(context.get("static_url"), "__self__", None)


@pass_context
def _hub_lang(context: Context) -> str:
    return hub_locale(context).replace("_", "-")


@pass_context
def _t(context: Context, text: str, *, locale: str = "", **values: Any) -> str:
    translated = translate(text, locale or hub_locale(context), _SENTENCES)
    return translated.format(**values) if values else translated


@pass_context
def _counted(context: Context, one: str, many: str, count: float, **values: Any) -> str:
    text = translate_counted(one, many, count, hub_locale(context), _SENTENCES)
    return text.format(count=count, **values)


@pass_context
def _hub_words(context: Context, text: Any) -> Any:
    return translated_words(text, hub_locale(context)) if isinstance(text, str) else text


@pass_context
def _hub_dictionary(context: Context) -> dict[str, str]:
    words = catalogue(hub_locale(context))
    return {text: translation for text, translation in words.items() if "{" not in text}


@pass_context
def _hub_status(context: Context, code: int) -> str:
    return translated_words(responses.get(code, ""), hub_locale(context))


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")


def _style(name: str) -> str:
    return next(folder / name for folder in _STYLES if (folder / name).is_file()).read_text(encoding="utf-8")


@cache
def _mark_address() -> str:
    return "data:image/svg+xml," + quote(_style("mark.svg").strip())


@cache
def _frame_style() -> Markup:
    style = _style("tokens.css") + _style("bar.css")
    return Markup(style.replace("./mark.svg", _mark_address()))  # noqa: S704 - files of ours


def _has_jupyterhubs_logo() -> bool:
    return not JupyterHub.initialized() or Path(JupyterHub.instance().logo_file).is_relative_to(
        DATA_FILES_PATH
    )


@pass_context
def _chosen_server(context: Context) -> str:
    # JupyterHub's page for choosing is given the default server, whichever it is for: /spawn/USER/SERVER
    path = _handler(context).path_args
    return path[1] if len(path) > 1 else ""


@pass_context
async def _pai_servers(context: Context, user: Any) -> list[ServerView]:
    return await views_of(user, hub_locale(context))


@pass_context
async def _pai_server(context: Context, user: Any, name: str) -> ServerView | None:
    return await view_of(user, name, hub_locale(context))
