"""`pai-hub doctor`: checks what the Hub needs, and says what to do."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pai_scheduler.server.doctor.finding import Finding, Severity, lines, wrong

from ..messages import msg
from .configuration import ConfigurationError, read_configuration

_CONFIG = "jupyterhub_config.py"


def main(arguments: Sequence[str] | None = None) -> int:
    """Check what the command line names; 1 where something is wrong."""
    given = make_parser().parse_args(arguments)
    return examine(given.config, given.folder, os.environ)


def make_parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    parser = argparse.ArgumentParser(prog="pai-hub", description="The Hub's side of PAI for Jupyter.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    about = "check what the Hub needs, and say what to do"
    doctor = commands.add_parser(
        "doctor",
        help=about,
        description=f"{about}. Run it as the account and with the environment of the Hub. Exit code 1: "
        "something is wrong",
    )
    doctor.add_argument(
        "--config",
        type=Path,
        default=Path(_CONFIG),
        metavar="FILE",
        help="its configuration (%(default)s)",
    )
    doctor.add_argument(
        "--folder",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="the Hub's working folder, to which names of files are relative (default: this one)",
    )
    return parser


def examine(config: Path, folder: Path, environ: Mapping[str, str]) -> int:
    """Print what is found about a Hub; 1 where something is wrong."""
    print(msg("The Hub ({file})", file=config), flush=True)
    verdicts = []
    # what JupyterHub and its parts log when they are set up is ours to say
    logged = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        for finding in _findings(config.absolute(), folder.absolute(), environ):
            verdicts.append(finding.verdict)
            # (the first line is of the place, which is said)
            print("\n".join(lines("", [finding])[1:]), flush=True)
    finally:
        logging.disable(logged)
    return int(Severity.WRONG in verdicts)


def _findings(config: Path, folder: Path, environ: Mapping[str, str]) -> Iterator[Finding]:
    try:
        hub = read_configuration(config, folder, environ)
    except ConfigurationError as error:
        yield wrong(
            msg("The configuration cannot be used: {error}", error=error.message),
            msg("Correct it; the Hub does not start with it."),
        )
        return
    # (they load much, some of it slowly)
    from .configuration import of_kept_files, of_logins
    from .offers import of_images, of_offers, of_shared_folders
    from .services import of_running_parts

    for judge in (of_logins, of_kept_files, of_offers, of_shared_folders, of_running_parts, of_images):
        yield from judge(hub)
