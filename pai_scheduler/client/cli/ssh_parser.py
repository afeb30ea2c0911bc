"""The arguments of the commands that get into tasks (`pai ssh`, `exec`, `cp` …)."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Protocol

from pai_scheduler.i18n import Message, msg

_PATHS = msg(
    "A path in a task is NAME:path, or NAME/worker-0:path; one that does not begin with / begins where\n"
    "sessions in the task do. What is there already, and the same, is not copied; what broke off goes on."
)
_PORTS = msg(
    "A port is a number or a label of portList; 8080:http is the port http at port 8080 of this machine.\n"
    "Without a number before it, it gets the same one here, or a free one."
)


class AddCommand(Protocol):
    """Adds a command to `pai`."""

    def __call__(self, name: str, about: Message, *parents: CommandParser) -> CommandParser:
        """Return its parser."""


class CommandParser(argparse.ArgumentParser):
    """A parser that leaves alone what stands behind `--`, where it has `add_words`."""

    _words_required: bool | None = None
    _complaint = ""

    def add_words(self, about: str, complaint: str, *, required: bool) -> None:
        """Take `-- COMMAND…`, as `words`; `complaint`: what to say where it is wrong."""
        self.add_argument("words", metavar="-- COMMAND", nargs="*", help=about)
        self._words_required, self._complaint = required, complaint

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse what stands before `--`; keep what stands behind as it is."""
        if args is None or self._words_required is None:
            return super().parse_known_args(args, namespace)
        place = args.index("--") if "--" in args else len(args)
        found, rest = super().parse_known_args(args[:place], namespace)
        words = list(args[place + 1 :])
        if found.words or (self._words_required and not words):
            self.error(self._complaint)
        found.words = words
        return found, rest


def add_ssh(command: AddCommand, named: CommandParser, whose: CommandParser, locale: str) -> None:
    """Add the commands."""

    def words(message: Message) -> str:
        return message.in_locale(locale)

    one = CommandParser(add_help=False)
    one.add_argument(
        "task",
        metavar="ROLE-INDEX",
        nargs="?",
        help=words(msg("which task, for example worker-0 (default: the only one)")),
    )
    terminal = CommandParser(add_help=False)
    terminal.add_argument(
        "-t", "--tty", action="store_true", help=words(msg("run it on a terminal, though it is a command"))
    )
    complaint = words(msg("write -- before the command: pai exec NAME -- COMMAND"))

    shell = command(
        "ssh", msg("open a shell in a task, or run a line of shell there"), named, one, terminal, whose
    )
    shell.add_words(
        words(msg("a line of shell, as ssh has it: its words are put together, then read by the shell")),
        complaint,
        required=False,
    )
    run = command("exec", msg("run a program in a task, or in all of a job"), named, one, terminal, whose)
    run.add_argument(
        "--all",
        dest="everywhere",
        action="store_true",
        help=words(
            msg("in every task at once, whose name stands before each line; the worst exit code counts")
        ),
    )
    run.add_words(
        words(msg("a program and its arguments, which it gets as they are")), complaint, required=True
    )
    copy = command("cp", msg("copy files and folders into a task or out of it"), whose)
    copy.formatter_class = argparse.RawDescriptionHelpFormatter
    copy.epilog = words(_PATHS)
    copy.add_argument(
        "-r", "--recursive", action="store_true", help=words(msg("folders too, with all that is in them"))
    )
    copy.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help=words(msg("what to copy, then where to; a folder that is there gets it under its name")),
    )
    forward = command(
        "port-forward", msg("let ports of this machine lead to ports of a task"), named, one, whose
    )
    forward.formatter_class = argparse.RawDescriptionHelpFormatter
    forward.epilog = words(_PORTS)
    forward.add_argument(
        "ports",
        metavar="PORT",
        nargs="+",
        help=words(msg("a port of the task, or a label of its ports; LOCAL:PORT says which port here")),
    )
    config = command(
        "ssh-config", msg("let ssh, VS Code and PyCharm find your running tasks, by a file for OpenSSH")
    )
    what = config.add_mutually_exclusive_group()
    what.add_argument(
        "--write",
        action="store_true",
        help=words(
            msg("write it with its keys to ~/.ssh/pai, which ~/.ssh/config then reads (default: print it)")
        ),
    )
    what.add_argument("--remove", action="store_true", help=words(msg("remove what --write has written")))
    command("ssh-info", msg("show how other programs log into the tasks of a job"), named, whose)
    key = command("ssh-key", msg("give the private key that opens the tasks of a job"), named, whose)
    key.add_argument(
        "--format",
        dest="form",
        choices=("openssh", "ppk", "public"),
        default="openssh",
        help=words(msg("for OpenSSH, for PuTTY and WinSCP, or its public half (default: openssh)")),
    )
    key.add_argument(
        "-o", "--output", metavar="FILE", help=words(msg("a file to write it to, which only you can read"))
    )


def add_keys(parser: argparse.ArgumentParser, common: argparse.ArgumentParser, locale: str) -> None:
    """Add the actions of `pai keys`."""
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    whose = argparse.ArgumentParser(add_help=False)
    whose.add_argument(
        "--user",
        metavar="U",
        default=None,
        help=msg("whose keys (default: yours; for administrators)").in_locale(locale),
    )

    def action(name: str, about: Message) -> argparse.ArgumentParser:
        text = about.in_locale(locale)
        made: argparse.ArgumentParser = actions.add_parser(
            name, help=text, description=text, parents=[whose, common]
        )
        made.set_defaults(command=f"keys {name}")
        return made

    action("list", msg("list the public keys that you registered"))
    action("add", msg("register a public key: it opens every task of yours")).add_argument(
        "file",
        metavar="FILE",
        help=msg("a public key's file, for example ~/.ssh/id_ed25519.pub; - is the standard input").in_locale(
            locale
        ),
    )
    action("remove", msg("forget a public key")).add_argument(
        "fingerprint", metavar="FINGERPRINT", help=msg("as pai keys list has it: SHA256:…").in_locale(locale)
    )
