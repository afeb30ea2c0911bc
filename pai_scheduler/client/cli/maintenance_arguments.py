"""What `pai maintenance` takes."""

from __future__ import annotations

import argparse
from datetime import datetime

from pai_scheduler.i18n import Message, msg


def add_maintenance(parser: argparse.ArgumentParser, common: argparse.ArgumentParser, locale: str) -> None:
    """Add the actions."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    def action(name: str, about: Message) -> argparse.ArgumentParser:
        text = about.in_locale(locale)
        made: argparse.ArgumentParser = actions.add_parser(
            name, help=text, description=text, parents=[common]
        )
        made.set_defaults(command=f"maintenance {name}")
        if name != "list":
            what = msg("the name of the maintenance").in_locale(locale)
            made.add_argument("name", metavar="NAME", help=what)
        return made

    def time(text: str) -> int:
        try:
            return round(1000 * datetime.fromisoformat(text).astimezone().timestamp())
        except (ValueError, OverflowError, OSError):
            wrong = msg("{text} is no time: give for example 2026-12-01T08:00", text=text)
            raise argparse.ArgumentTypeError(wrong.in_locale(locale)) from None

    action("list", msg("list when machines are down"))
    wanted = action("set", msg("as administrator, plan when machines are down, or change it"))
    nodes = msg("machines by name; * stands for any part, ? for one letter").in_locale(locale)
    wanted.add_argument("nodes", metavar="MACHINE", nargs="+", help=nodes)
    for option, about in (
        ("--begin", msg("when it begins, as 2026-12-01T08:00 by this machine's clock or with a zone")),
        ("--end", msg("when it ends, likewise")),
    ):
        wanted.add_argument(option, metavar="TIME", required=True, type=time, help=about.in_locale(locale))
    why = msg("why: those whose jobs wait read it").in_locale(locale)
    wanted.add_argument("--reason", metavar="TEXT", required=True, help=why)
    action("delete", msg("as administrator, forget it; where it is under way its machines are open again"))
