"""Options of the ways on which the ends of jobs are told outside."""

from __future__ import annotations

import argparse
from pathlib import Path

from pai_scheduler.core.instructions import MAIL, WEBHOOK
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.i18n import LOCALES, msg
from pai_scheduler.service.notifications import Channel, Notifications
from pai_scheduler.service.webhook import Webhooks


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
    _add_mail_options(parser)


def _add_mail_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mail-server",
        metavar="HOST[:PORT]",
        help="the server by which jobs that ask for it (extras.notify) have their end told by mail (default: "
        "none, and no mail is sent)",
    )
    parser.add_argument(
        "--mail-security",
        choices=("starttls", "tls", "none"),
        default="starttls",
        help="with --mail-server: how the connection is protected (%(default)s)",
    )
    parser.add_argument(
        "--mail-user", default="", metavar="NAME", help="with --mail-server: who logs in there, if anybody"
    )
    parser.add_argument(
        "--mail-password-file", type=Path, metavar="FILE", help="with --mail-user: file with the password"
    )
    parser.add_argument(
        "--mail-from", default="", metavar="ADDRESS", help="with --mail-server: the sender's address"
    )
    parser.add_argument(
        "--mail-to",
        default="",
        metavar="ADDRESS",
        help="with --mail-server: a user's own address, in which {user} stands for the name",
    )
    parser.add_argument(
        "--mail-recipient",
        action="append",
        default=[],
        metavar="PATTERN",
        help="with --mail-server: addresses that jobs may name, as *@lab.example; may be given several times "
        "(default: only a user's own)",
    )
    parser.add_argument(
        "--mail-language",
        choices=LOCALES,
        default="en",
        help="with --mail-server: the language of mail (%(default)s)",
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
    if options.mail_server:
        channels[MAIL] = _open_mail(options)
    return Notifications(channels, options.console_url)


def _open_mail(options: argparse.Namespace) -> Channel:
    # (a library that only they need who send mail)
    from pai_scheduler.service.mail import SECURITIES, Mails, MailServer

    host, colon, port = options.mail_server.rpartition(":")
    if colon and not port.isdigit():
        raise StartError(
            msg("--mail-server must be a host, or a host and its port, as mail.lab.example:587.")
        )
    server = MailServer(
        host if colon else options.mail_server,
        int(port) if colon else SECURITIES[options.mail_security],
        options.mail_security,
        options.mail_user,
        options.mail_password_file,
    )
    return Mails(server, options.mail_from, options.mail_to, options.mail_recipient, options.mail_language)
