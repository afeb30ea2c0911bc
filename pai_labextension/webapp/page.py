"""The page at a service's address while it does not answer: what it does, and how it is started again."""

from __future__ import annotations

from html import escape

from pai_labextension.messages import msg

from .program import Program, State
from .words import sentence_of, title_of

#: Seconds after which the page of a starting service looks again.
_AGAIN_SECONDS = 1
HEADERS = (
    ("Cache-Control", "no-store"),
    (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'self'",
    ),
    ("X-Content-Type-Options", "nosniff"),
)
_PAGE = """<!DOCTYPE html>
<html lang="{lang}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>{again}
<style>
:root {{color-scheme: light dark}}
body {{font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 12vh auto; padding: 0 1rem}}
h1 {{font-size: 1.5rem; overflow-wrap: anywhere}}
h2 {{font-size: 1rem; margin-bottom: .25rem}}
pre {{white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8rem}}
pre {{border: 1px solid; border-radius: .5rem; padding: .75rem}}
button {{font: inherit; padding: .5rem 1rem; border: 0; border-radius: .4rem; cursor: pointer}}
button {{background: #1558c0; color: #fff}}
form, a {{display: inline-block; margin: .5rem 1rem .5rem 0}}
</style></head>
<body><main><h1>{title}</h1><p role="status">{sentence}</p>{log}{actions}</main></body></html>
"""


def page(program: Program, locale: str, *, start_url: str, lab_url: str, xsrf: str) -> str:
    """Make the page in a language.

    `start_url`: where a click starts the service; `xsrf`: the token that shows that it was a click.
    """
    starting = program.state is State.STARTING
    return _PAGE.format(
        lang=locale.replace("_", "-"),
        title=escape(title_of(program).in_locale(locale)),
        sentence=escape(sentence_of(program).in_locale(locale)),
        again=f'<meta http-equiv="refresh" content="{_AGAIN_SECONDS}">' if starting else "",
        log="" if starting else _log(program.log, locale),
        actions="" if starting else _actions(locale, start_url, lab_url, xsrf),
    )


def _log(log: str, locale: str) -> str:
    if not log:
        return f"<p>{escape(msg('It has written nothing.').in_locale(locale))}</p>"
    heading = msg("The last lines that it wrote").in_locale(locale)
    return f"<h2>{escape(heading)}</h2><pre>{escape(log)}</pre>"


def _actions(locale: str, start_url: str, lab_url: str, xsrf: str) -> str:
    again, look = msg("Start it again"), msg("Look around in JupyterLab")
    return (
        f'<form method="post" action="{escape(start_url)}">'
        f'<input type="hidden" name="_xsrf" value="{escape(xsrf)}">'
        f"<button>{escape(again.in_locale(locale))}</button></form>"
        f'<a href="{escape(lab_url)}">{escape(look.in_locale(locale))}</a>'
    )
