"""The arguments of `pai`, and how they are explained."""

from __future__ import annotations

import argparse
from datetime import datetime
from functools import partial

from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.dependencies import On, read_entry
from pai_scheduler.rest.address import DEFAULT_URL

from .ssh_parser import CommandParser, add_keys, add_ssh

# What one may type after `pai fs`, and how it is explained.

PATHS = msg(
    "paths: /alice/x, x in your own folder, $PAI_DEFAULT_FS_URI/x, or a whole URI of the storage\n"
    "(in a shell write '$PAI_DEFAULT_FS_URI/x' in single quotes where that variable is not set)"
)


def add_fs(parser: argparse.ArgumentParser, common: argparse.ArgumentParser, locale: str) -> None:
    """Add the actions of `pai fs`."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)

    def words(message: Message) -> str:
        return message.in_locale(locale)

    def action(name: str, about: Message) -> argparse.ArgumentParser:
        text = words(about)
        made: argparse.ArgumentParser = actions.add_parser(
            name,
            help=text,
            description=text,
            epilog=words(PATHS),
            parents=[common],
            conflict_handler="resolve",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.set_defaults(command=f"fs {name}")
        return made

    def flag(to: argparse.ArgumentParser, short: str, long: str, about: Message) -> None:
        to.add_argument(short, long, action="store_true", help=words(about))

    path = words(msg("a file or folder of the storage"))
    human = msg("lengths as 1.5 MB")

    listing = action("ls", msg("list a folder"))
    flag(listing, "-l", "--long", msg("with rights, owner, length and time of change"))
    flag(listing, "-R", "--recursive", msg("with everything that is in its folders"))
    flag(listing, "-h", "--human", human)
    listing.add_argument("path", metavar="PATH", nargs="?", default="", help=path)

    put = action("put", msg("upload files and folders; what is there already, and the same, is not sent"))
    put.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help=words(
            msg(
                "what to upload, then where to (default: your own folder); a folder that is there gets it "
                "under its name"
            )
        ),
    )
    get = action("get", msg("download files and folders; what is here already, and the same, is not fetched"))
    get.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help=words(
            msg(
                "what to download, then where to (with one: the working folder); a folder that is there gets "
                "it under its name"
            )
        ),
    )
    rm = action("rm", msg("delete files, and with -r folders"))
    flag(rm, "-r", "--recursive", msg("folders too, with all that is in them"))
    rm.add_argument("paths", metavar="PATH", nargs="+", help=path)

    mkdir = action("mkdir", msg("make folders, and those above them"))
    mkdir.add_argument("paths", metavar="PATH", nargs="+", help=path)

    usage = action("du", msg("tell how much is in files and folders: bytes, files, folders"))
    flag(usage, "-h", "--human", human)
    usage.add_argument("paths", metavar="PATH", nargs="*", help=path)

    cat = action("cat", msg("print files"))
    cat.add_argument("paths", metavar="PATH", nargs="+", help=path)

    target = words(msg("its new path; a folder that is there gets it under its name"))
    move = action("mv", msg("move or rename a file or folder"))
    flag(move, "-f", "--force", msg("in the place of a file that is there"))
    copy = action("cp", msg("copy a file, or with -r a folder, within the storage"))
    flag(copy, "-r", "--recursive", msg("folders too, with all that is in them"))
    flag(copy, "-f", "--force", msg("in the place of files that are there"))
    for each in (move, copy):
        each.add_argument("source", metavar="FROM", help=path)
        each.add_argument("target", metavar="TO", help=target)


# What `pai maintenance` takes.


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


# What one may type after `pai schedule`.


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


# What one may type after `pai`, and how it is explained.


def make_parser(locale: str) -> argparse.ArgumentParser:
    """Make the parser, with its explanations in `locale`."""

    def words(message: Message) -> str:
        return message.in_locale(locale)

    common = CommandParser(add_help=False)
    common.add_argument(
        "--url",
        default=argparse.SUPPRESS,
        help=words(msg("address of the scheduler (default: $PAI_API_URL, or {url})", url=DEFAULT_URL)),
    )
    common.add_argument(
        "--token",
        default=argparse.SUPPRESS,
        help=words(
            msg(
                "your token (default: $PAI_TOKEN, then $JUPYTERHUB_API_TOKEN; "
                "others on this machine can see an option)"
            )
        ),
    )
    common.add_argument(
        "--json", action="store_true", default=argparse.SUPPRESS, help=words(msg("print the answer as JSON"))
    )
    common.add_argument(
        "--zone",
        action="store_true",
        default=argparse.SUPPRESS,
        help=words(
            msg("write times with their zone (they are those of this machine, or of the zone that $TZ names)")
        ),
    )
    whose = CommandParser(add_help=False)
    whose.add_argument(
        "--user",
        metavar="U",
        default=None,
        help=words(msg("whose job it is (default: yours; for administrators)")),
    )
    named = CommandParser(add_help=False)
    named.add_argument("name", metavar="NAME", help=words(msg("the job's name")))

    parser = argparse.ArgumentParser(
        prog="pai",
        description=words(msg("Submit and watch jobs of PAI for Jupyter.")),
        epilog=words(EXIT_CODES),
        parents=[common],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=CommandParser
    )

    def command(name: str, about: Message, *parents: CommandParser) -> CommandParser:
        text = words(about)
        return commands.add_parser(name, help=text, description=text, parents=[*parents, common])

    submit = command("submit", msg("submit a job"), whose)
    _add_file(submit, words(FILE_HELP))
    submit.add_argument(
        "--watch",
        dest="watch_it",
        action="store_true",
        help=words(msg("tell what happens until it has ended; then print its log")),
    )
    submit.add_argument(
        "--after",
        metavar="JOB[:ON]",
        action="append",
        type=partial(_after, locale),
        help=words(
            msg(
                "start it once this job of yours has succeeded, or has ended as ON says: succeeded, ended or "
                "failed; may be given several times"
            )
        ),
    )
    _add_code(submit, locale)
    jobs = command("jobs", msg("list jobs, newest first"))
    jobs.add_argument("--user", metavar="U", default=None, help=words(msg("only those of this user")))
    jobs.add_argument(
        "--state",
        metavar="S",
        default="",
        help=words(msg("only those in this state, or in these: waiting,running")),
    )
    jobs.add_argument(
        "--limit", type=int, metavar="N", help=words(msg("only the newest, so many (10,000 at most)"))
    )
    command("show", msg("show a job and its tasks"), named, whose)
    one_task = CommandParser(add_help=False)
    one_task.add_argument(
        "task", metavar="ROLE-INDEX", nargs="?", help=words(msg("which task, for example worker-0"))
    )
    one_task.add_argument(
        "--attempt", type=int, metavar="N", help=words(msg("which attempt, from 0 (default: the last)"))
    )
    logs = command("logs", msg("print the log of a task"), named, one_task, whose)
    logs.add_argument(
        "-f",
        "--follow",
        action="store_true",
        help=words(msg("go on as it is written, until the task has ended")),
    )
    logs.add_argument(
        "-t", "--timestamps", action="store_true", help=words(msg("say when each line began (UTC)"))
    )
    logs.add_argument(
        "--stream",
        choices=("stdout", "stderr", "all"),
        default="all",
        help=words(msg("which stream (default: all)")),
    )
    metrics = command(
        "metrics", msg("show what a task uses: CPU, memory, GPUs, disk, network"), named, one_task, whose
    )
    metrics.add_argument(
        "-f", "--follow", action="store_true", help=words(msg("show it anew until the task has ended"))
    )
    several = CommandParser(add_help=False)
    several.add_argument(
        "names",
        metavar="NAME",
        nargs="+",
        help=words(msg("the job's name, or a pattern in quotation marks: 'sweep-*' means all that begin so")),
    )
    stop = command("stop", msg("stop jobs"), several, whose)
    stop.add_argument(
        "--reason", metavar="TEXT", help=words(msg("why; it is told in the job's events and with its end"))
    )
    stop.add_argument(
        "--now",
        action="store_true",
        help=words(msg("kill its tasks at once, also where they are being stopped already")),
    )
    command("delete", msg("delete jobs and their logs; a running one is stopped first"), several, whose)
    _add_nodes(
        command("nodes", msg("list the machines and what is free on them; close and open one")),
        common,
        locale,
    )
    queue = command("queue", msg("show which jobs wait, first come first"))
    queue.add_argument(
        "virtual_cluster",
        metavar="VC",
        nargs="?",
        help=words(msg("only those of this virtual cluster")),
    )
    move = command("move", msg("move a waiting job among those of its priority"), named, whose)
    move.add_argument(
        "place",
        metavar="PLACE",
        type=int,
        help=words(msg("from 1; among your own jobs, for administrators among all")),
    )
    priority = command("priority", msg("give a job another priority"), named, whose)
    priority.add_argument(
        "priority", metavar="N", type=int, help=words(msg("0 to 100; a higher one comes first"))
    )
    add_maintenance(
        command("maintenance", msg("list or, as administrator, plan when machines are down")), common, locale
    )
    command("vcs", msg("list the virtual clusters"))
    _add_virtual_clusters(
        command("vc", msg("list or, as administrator, change the virtual clusters")), common, locale
    )
    _add_file(
        command("validate", msg("say what is wrong with a job, or whether it fits now")), words(FILE_HELP)
    )
    add_schedules(
        command("schedule", msg("list and change jobs that run again and again")),
        common,
        words(FILE_HELP),
        locale,
    )
    add_ssh(command, named, whose, locale)
    add_keys(
        command("keys", msg("list and change the public keys with which you log into tasks")),
        common,
        locale,
    )
    add_fs(command("fs", msg("look at, upload, download and change files of the storage")), common, locale)
    return parser


def _after(locale: str, text: str) -> str | dict[str, str]:
    """Read `JOB` or `JOB:ON` as an entry of `extras.after`."""
    entry = read_entry(text)
    if not isinstance(entry, str) and entry["on"] not in list(On):
        wrong = msg("{on} must be one of {known}", on=entry["on"], known=", ".join(On))
        raise argparse.ArgumentTypeError(wrong.in_locale(locale))
    return entry


def _add_code(submit: argparse.ArgumentParser, locale: str) -> None:
    code = submit.add_mutually_exclusive_group()
    code.add_argument(
        "--code",
        metavar="DIR",
        help=msg(
            "upload the code in this folder first (default: FILE's folder, where its .pai/settings.json or "
            ".vscode/settings.json enables it)"
        ).in_locale(locale),
    )
    code.add_argument(
        "--no-code",
        action="store_true",
        help=msg("upload nothing, whatever the settings are").in_locale(locale),
    )
    for option, about in (
        ("--include", msg("which files, for example '**/*.py'; may be given several times")),
        ("--exclude", msg("which files not; may be given several times")),
    ):
        submit.add_argument(option, metavar="GLOB", action="append", help=about.in_locale(locale))
    submit.add_argument(
        "--generate-name",
        action="store_true",
        help=msg("put 8 digits after the job's name, so that it is used nowhere yet").in_locale(locale),
    )


def _add_nodes(parser: argparse.ArgumentParser, common: argparse.ArgumentParser, locale: str) -> None:
    actions = parser.add_subparsers(metavar="ACTION")
    for name, about in (
        ("cordon", msg("as administrator, let nothing new start on a machine; what runs goes on")),
        ("uncordon", msg("as administrator, let tasks start on a machine again")),
    ):
        text = about.in_locale(locale)
        action: argparse.ArgumentParser = actions.add_parser(
            name, help=text, description=text, parents=[common]
        )
        action.set_defaults(command=f"nodes {name}")
        action.add_argument("name", metavar="NAME", help=msg("the machine's name").in_locale(locale))
        if name == "cordon":
            why = msg("why: those whose jobs wait read it").in_locale(locale)
            action.add_argument("--reason", metavar="TEXT", required=True, help=why)


def _add_virtual_clusters(
    parser: argparse.ArgumentParser, common: argparse.ArgumentParser, locale: str
) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    named = argparse.ArgumentParser(add_help=False)
    named.add_argument("name", metavar="NAME", help=msg("the virtual cluster's name").in_locale(locale))

    def action(name: str, about: Message, *parents: argparse.ArgumentParser) -> argparse.ArgumentParser:
        text = about.in_locale(locale)
        made: argparse.ArgumentParser = actions.add_parser(
            name, help=text, description=text, parents=[*parents, common]
        )
        made.set_defaults(command=f"vc {name}")
        return made

    action("list", msg("list the virtual clusters"))
    wanted = action(
        "set",
        msg(
            "make a virtual cluster or change it; what it needs comes out of default, what is not said stays"
        ),
        named,
    )
    wanted.add_argument(
        "capacity", metavar="PERCENT", type=float, help=msg("guaranteed per cent").in_locale(locale)
    )
    wanted.add_argument(
        "--max",
        dest="most",
        metavar="PERCENT",
        type=float,
        help=msg("per cent at most, with what it borrows").in_locale(locale),
    )
    for option, target, about in (
        ("--user", "users", msg("who may use it; may be given several times")),
        ("--group", "groups", msg("a group that may use it; may be given several times")),
    ):
        wanted.add_argument(
            option, dest=target, metavar="NAME", action="append", help=about.in_locale(locale)
        )
    wanted.add_argument(
        "--everybody", action="store_true", help=msg("everybody may use it").in_locale(locale)
    )
    action("delete", msg("delete a virtual cluster that has no jobs left; its share goes to default"), named)
    action("stop", msg("let nothing more of a virtual cluster start; what runs goes on"), named)
    action("start", msg("let a stopped virtual cluster go on"), named)


FILE_HELP = msg("the job's JSON, comments and trailing commas allowed; - is the standard input")
EXIT_CODES = msg(
    "exit codes:\n"
    "  0  done; submit --watch: the job has succeeded\n"
    "  1  refused: a wrong job, a job or file that is not there, no permission\n"
    "  2  wrong usage, or a file that cannot be read\n"
    "  3  the scheduler does not answer\n"
    "  4  submit --watch: the job has failed or was stopped\n"
    "  255  ssh, exec: there was no way in, or it broke off; otherwise they end as the command did"
)


def _add_file(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("file", metavar="FILE", help=text)
