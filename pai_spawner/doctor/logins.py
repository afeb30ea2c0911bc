"""Judges who may log in, and with what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jupyterhub.auth import DummyAuthenticator
from jupyterhub.authenticators.shared import SharedPasswordAuthenticator

from pai_scheduler.server.doctor.finding import Finding, good, note, wrong

from ..messages import msg
from .hub_configuration import HubConfiguration, is_loopback


def of_logins(hub: HubConfiguration) -> Iterator[Finding]:
    """Judge the authenticator. What it is told is read, nobody logs in."""
    kind = hub.app.authenticator_class
    everybody = issubclass(kind, DummyAuthenticator | SharedPasswordAuthenticator)
    public = str(hub.app.public_url or hub.app.subdomain_host)
    if everybody and (not is_loopback(hub.app.bind_url) or (public and not is_loopback(public))):
        yield wrong(
            msg(
                "Others reach the Hub at {url}, and everybody logs in with one password, or none ({name}).",
                url=public or hub.app.bind_url,
                name=kind.__name__,
            ),
            msg("Take an authenticator that knows who people are: hub_config/variants has some."),
        )
    elif everybody:
        yield note(
            msg(
                "Everybody logs in with one password, or none ({name}), on this machine only.",
                name=kind.__name__,
            )
        )
    else:
        yield good(msg("People log in by {name}.", name=kind.__name__))
    try:
        authenticator: Any = kind(config=hub.config)
        nobody = not (authenticator.any_allow_config or authenticator.admin_users)
    except Exception as error:
        yield wrong(
            msg("The login cannot be set up: {error}", error=error),
            msg("Correct what c.{name} says.", name=kind.__name__),
        )
        return
    if nobody:
        yield wrong(
            msg("Nobody may log in."),
            msg("Set c.Authenticator.allowed_users, allowed_groups, or allow_all = True."),
        )
