"""How an administrator opens the ways on which the ends of jobs are told outside."""

from __future__ import annotations

import argparse
from pathlib import Path

from pai_scheduler.core.announcements import WEBHOOK
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.job.messages import msg
from pai_scheduler.notifications.channel import Channel
from pai_scheduler.notifications.notifications import Notifications
from pai_scheduler.notifications.webhook import Webhooks


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what an administrator may say about them."""
    parser.add_argument(
        "--webhook-host",
        action="append",
        default=[],
        metavar="HOST[:PORT]",
        help="a host that jobs may name for their webhooks (extras.notify); may be given several times "
        "(default: none, and no job has a webhook)",
    )
    parser.add_argument(
        "--webhook-secret-file",
        type=Path,
        metavar="FILE",
        help="with --webhook-host: file with the secret that webhooks are signed with",
    )


def open_notifications(options: argparse.Namespace) -> Notifications:
    """Open the ways that the options name; StartError where something is missing or wrong."""
    channels: dict[str, Channel] = {}
    if options.webhook_host:
        if options.webhook_secret_file is None:
            raise StartError(
                msg(
                    "Receivers know webhooks by their signature: give --webhook-secret-file FILE too. A "
                    "secret is made by: {command}",
                    command="(umask 077; openssl rand -hex 32 > webhook-secret)",
                )
            )
        channels[WEBHOOK] = Webhooks(options.webhook_host, options.webhook_secret_file)
    return Notifications(channels)
