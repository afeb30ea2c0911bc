"""What one may type after `pai schedule`."""

from __future__ import annotations

import argparse

from pai_scheduler.i18n import Message, msg


def add_schedules(
    parser: argparse.ArgumentParser, common: argparse.ArgumentParser, file_help: str, locale: str
) -> None:
    """Add the actions of `pai schedule`."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    def words(message: Message) -> str:
        return message.in_locale(locale)

    whose = argparse.ArgumentParser(add_help=False)
    whose.add_argument(
        "--user",
        metavar="U",
        default=None,
        help=words(msg("whose schedule it is (default: yours; for administrators)")),
    )
    named = argparse.ArgumentParser(add_help=False)
    named.add_argument("name", metavar="NAME", help=words(msg("the schedule's name")))

    def action(name: str, about: Message, *parents: argparse.ArgumentParser) -> argparse.ArgumentParser:
        text = words(about)
        made: argparse.ArgumentParser = actions.add_parser(
            name, help=text, description=text, parents=[*parents, whose, common]
        )
        made.set_defaults(command=f"schedule {name}")
        return made

    action("list", msg("list the schedules: when each runs next, and what came of it last"))
    create = action("create", msg("have a job run again and again, or change how; nothing is uploaded"))
    create.add_argument("file", metavar="FILE", help=file_help)
    create.add_argument(
        "--cron",
        metavar="EXPRESSION",
        required=True,
        help=words(
            msg(
                "when: minute, hour, day of the month, month, day of the week; '30 2 * * MON-FRI' is half "
                "past two on week days"
            )
        ),
    )
    create.add_argument(
        "--timezone",
        dest="timezone",
        metavar="ZONE",
        required=True,
        help=words(msg("whose clocks tell it, for example Asia/Shanghai or UTC")),
    )
    create.add_argument(
        "--name", metavar="NAME", help=words(msg("the schedule's name (default: the job's name)"))
    )
    create.add_argument(
        "--overlap",
        choices=("skip", "allow"),
        default="skip",
        help=words(msg("what to do when a run is due and another has not ended (default: skip)")),
    )
    action("show", msg("show a schedule and its job"), named)
    action("pause", msg("submit nothing until it goes on"), named)
    action("resume", msg("let a paused schedule go on; what was due meanwhile is not made up for"), named)
    action("run", msg("submit its job now"), named)
    action("delete", msg("delete a schedule; its jobs stay as they are"), named)
