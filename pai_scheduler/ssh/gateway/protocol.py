"""The JSON between the SSH gateway and the service (`/access/…`), and settings of a gateway process."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Literal, NotRequired, TypedDict

# The JSON between the SSH gateway and the service, which the gateway alone may speak to (`/access/…`).
#
# POST …/access/login LoginRequest → LoginAnswer; 401: nobody is let in with that POST …/access/open
# OpenRequest → Target; 404, 409 with a sentence for the person POST …/access/note Note → 204 POST
# …/access/still StillRequest → StillAnswer

#: What somebody does in a task; `forward` with the port in `detail`.
Kind = Literal["shell", "exec", "sftp", "forward", "remote-forward", "agent"]


class LoginRequest(TypedDict):
    """Somebody who would log in as `login`, from the address `peer`.

    `credential`: a public key (`ssh-ed25519 AAAA…`), whose owner the gateway makes sure of, or a token.
    """

    login: str
    method: Literal["publickey", "password"]
    credential: str
    peer: str


class LoginAnswer(TypedDict):
    """The authenticated user. `session_token`: to be passed to `open` and `note`, valid for this login only.

    `by`: how it was proved, for people ("job key", "key SHA256:…", "token").
    """

    user: str
    by: str
    session_token: str


class OpenRequest(TypedDict):
    """Somebody who has logged in and opens something for the first time. `language`: "en", "zh_CN"."""

    login: str
    session_token: str
    language: NotRequired[str]


class TaskTarget(TypedDict):
    """The task that is meant, and how to reach it.

    `host`, `port`: its SSH server, which knows the user `root` with `privateKey` (OpenSSH's PEM) and is known
    by `hostKey` (a line `ssh-ed25519 …`). `forward`: the hosts to which connections may be forwarded, names
    and addresses, those of the task itself (`localhost`, `127.0.0.1`, `::1`) included. When the task ends, so
    does its server. `isolated` False: it runs without a container's isolation, which users who open a shell
    are told (`notice`). `signals`: the program in the task that sends signals to what a session started,
    where its server does not do that itself.
    """

    user: str
    job: str
    task: str
    host: str
    port: int
    privateKey: str
    hostKey: str
    forward: list[str]
    isolated: bool
    notice: NotRequired[str]
    signals: NotRequired[str]


class Note(TypedDict):
    """Something was opened in a task, or everything of one connection closed after `seconds`.

    `what`: all that the connection did, when it is closed.
    """

    session_token: str
    login: str
    peer: str
    event: Literal["opened", "closed"]
    what: list[Kind]
    detail: NotRequired[str]
    seconds: NotRequired[float]


class OpenLogin(TypedDict):
    """A login that is still open; `method` and `credential` as in LoginRequest."""

    login: str
    session_token: str
    method: Literal["publickey", "password"]
    credential: str


class StillRequest(TypedDict):
    """A request to revalidate open logins, at most `MOST_HELD` at once."""

    held: list[OpenLogin]


class StillAnswer(TypedDict):
    """`gone`: the places in `held` of those whose key or token is good no more.

    About whom nobody can be asked just now is not gone: away is not revoked.
    """

    gone: list[int]


#: logins that one StillRequest asks about
MOST_HELD = 500


# What a process of the gateway is told at its start, on its standard input: it is secret.

KEEPALIVE_SECONDS = 30.0
#: what was revoked ends within a minute: this, and what the service remembers of the Hub's answers, are less
RECHECK_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """`service`: the URL under which `/access/…` is; `host_key`: OpenSSH's PEM; `sockets`: what listens.

    `keepalive`: seconds after which a client or a task's server that is silent is asked for a sign of life;
    at the fourth it is gone. `recheck`: seconds between two looks at whether who is in may stay.
    """

    service: str
    token: str = field(repr=False)
    host_key: str = field(repr=False)
    sockets: list[int] = field(default_factory=list)
    keepalive: float = KEEPALIVE_SECONDS
    recheck: float = RECHECK_SECONDS
    log_level: str = "info"
    log_format: str = "text"

    def to_line(self) -> bytes:
        """Write them as one line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> GatewaySettings:
        """Return the settings of such a line."""
        return cls(**json.loads(line))
