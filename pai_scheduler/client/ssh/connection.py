"""The way to a task: one SSH connection through the gateway, with the token that the scheduler knows too."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

import asyncssh

from pai_scheduler.client.rest import Client
from pai_scheduler.i18n import Message, msg
from pai_scheduler.rest.models import SshGateway

#: Seconds until a gateway that does not answer is given up, and after which a silent one is asked for a sign.
_CONNECT_SECONDS, _KEEPALIVE_SECONDS = 15.0, 30.0


class RemoteError(Exception):
    """A task cannot be reached; `message` says why, and what to do."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


class UnreachableGatewayError(RemoteError):
    """Nobody answers at the gateway's address, or no longer: it may be back in a moment."""


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """Where the SSH gateway listens, and the key by which it is known (a line `ssh-ed25519 …`)."""

    host: str
    port: int
    host_key: str


async def find_gateway(client: Client) -> GatewayAddress:
    """Ask the scheduler for its gateway; RemoteError where there is none. `ApiError` and the like as ever.

    Where it has no name of its own, it is at the address at which the scheduler was reached.
    """
    return gateway_of((await client.about()).get("ssh"), client.url)


def gateway_of(found: SshGateway | None, url: str) -> GatewayAddress:
    """Read what the scheduler at `url` says of its gateway; RemoteError where it has none."""
    if found is None:
        raise RemoteError(msg("This scheduler has no SSH gateway."))
    host = found["host"] or urlsplit(url).hostname or "127.0.0.1"
    return GatewayAddress(host, found["port"], found["hostKey"])


async def connect(gateway: GatewayAddress, login: str, token: str) -> asyncssh.SSHClientConnection:
    """Log in as `login` (`<user>+<job>+<role>-<index>`, see docs/users/ssh.md); RemoteError with the reason.

    UnreachableGatewayError where nobody answers.
    """
    address = f"{gateway.host}:{gateway.port}"
    try:
        known = asyncssh.import_known_hosts(f"* {gateway.host_key}\n")
        return await asyncssh.connect(
            gateway.host,
            gateway.port,
            username=login,
            password=token,
            known_hosts=known,
            # nothing of this user's own settings: it must work the same for everybody
            config=[],
            client_keys=[],
            agent_path=None,
            connect_timeout=_CONNECT_SECONDS,
            keepalive_interval=_KEEPALIVE_SECONDS,
        )
    except asyncssh.HostKeyNotVerifiable as error:
        raise RemoteError(
            msg(
                "At {address} answers another SSH server than the scheduler's gateway. Ask an administrator.",
                address=address,
            )
        ) from error
    except asyncssh.PermissionDenied as error:
        raise RemoteError(msg("The gateway does not let {login} in with this token.", login=login)) from error
    except (OSError, asyncssh.Error, TimeoutError) as error:
        reason = str(error) or type(error).__name__
        raise UnreachableGatewayError(
            msg(
                "The SSH gateway at {address} does not answer: {reason}. Where it never does, ask an "
                "administrator whether its port is open from here, and by which name.",
                address=address,
                reason=reason,
            )
        ) from error
