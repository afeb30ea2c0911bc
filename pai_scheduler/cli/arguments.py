"""What one may type after `pai`, and how it is explained."""

from __future__ import annotations

import argparse

from ..client import DEFAULT_URL
from ..job.messages import Message, msg


def make_parser(locale: str) -> argparse.ArgumentParser:
    """Make the parser, with its explanations in `locale`."""

    def words(message: Message) -> str:
        return message.in_locale(locale)

    common = argparse.ArgumentParser(add_help=False)
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
    whose = argparse.ArgumentParser(add_help=False)
    whose.add_argument(
        "--user",
        metavar="U",
        default=None,
        help=words(msg("whose job it is (default: yours; for administrators)")),
    )
    named = argparse.ArgumentParser(add_help=False)
    named.add_argument("name", metavar="NAME", help=words(msg("the job's name")))

    parser = argparse.ArgumentParser(
        prog="pai",
        description=words(msg("Submit and watch jobs of PAI for Jupyter.")),
        epilog=words(EXIT_CODES),
        parents=[common],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name: str, about: Message, *parents: argparse.ArgumentParser) -> argparse.ArgumentParser:
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
    jobs = command("jobs", msg("list jobs, newest first"))
    jobs.add_argument("--user", metavar="U", default=None, help=words(msg("only those of this user")))
    command("show", msg("show a job and its tasks"), named, whose)
    one_task = argparse.ArgumentParser(add_help=False)
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
    command("stop", msg("stop a job"), named, whose)
    command("delete", msg("delete a job and its logs; a running one is stopped first"), named, whose)
    command("nodes", msg("list the machines and what is free on them"))
    command("vcs", msg("list the virtual clusters"))
    _add_file(
        command("validate", msg("say what is wrong with a job, or whether it fits now")), words(FILE_HELP)
    )
    return parser


FILE_HELP = msg("the job's JSON, comments allowed; - is the standard input")
EXIT_CODES = msg(
    "exit codes:\n"
    "  0  done; submit --watch: the job has succeeded\n"
    "  1  refused: a wrong job, a job that is not there, no permission\n"
    "  2  wrong usage, or a file that cannot be read\n"
    "  3  the scheduler does not answer\n"
    "  4  submit --watch: the job has failed or was stopped"
)


def _add_file(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("file", metavar="FILE", help=text)
