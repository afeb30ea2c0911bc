"""What one may type after `pai fs`, and how it is explained."""

from __future__ import annotations

import argparse

from pai_scheduler.i18n import Message, msg

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
