"""Operations of the API: what a call is, takes and answers, declared at the method that serves it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar

from msgspec import Meta

from pai_scheduler.rest.models import Count, Text

Method = TypeVar("Method", bound=Callable[..., Any])
#: JSON Schema as it is written, where there is no type for it.
Schema = Mapping[str, Any]
#: What is sent: a type of `rest.models`, a list of them, …, or a schema.
Model = Any

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
#: What may stand in a part of an address; anything else that is one part.
_PATTERNS = {"index": "[0-9]{1,9}", "port": "[0-9]{1,5}", "stream": "stdout|stderr|all"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """Path, query or header parameter. `default`: what is meant where it is absent."""

    name: str
    place: Literal["path", "query", "header"]
    model: Model
    description: str
    default: object = None
    #: other calls have it alike, so the document has it once, under this name
    shared: str = ""


def query(name: str, model: Model, description: str, default: object = None) -> Parameter:
    """Declare a parameter of the query."""
    return Parameter(name, "query", model, description, default)


#: a job as it is submitted
JOB: Schema = {"$ref": "#/components/schemas/Job"}
TEXT: Schema = {"type": "string"}
FLAG = Literal["0", "1", "true", "false"]
#: Entries of one page at most: a page is made before its first byte is sent.
LARGEST_PAGE = 10_000
LIMIT = Parameter(
    "limit",
    "query",
    Annotated[int, Meta(ge=1, le=LARGEST_PAGE)],
    "A page, of so many entries; without it the whole list",
    shared="Limit",
)
AFTER = Parameter(
    "after",
    "query",
    str,
    "Only what comes after a page; the cursor in its header `Link`",
    shared="After",
)
FOLLOW = Parameter("follow", "query", FLAG, "Go on as it happens", "0", shared="Follow")
ATTEMPT = query("attempt", Count, "From 0; absent, the last")
LAST_EVENT_ID = Parameter(
    "Last-Event-ID",
    "header",
    {"type": "string", "pattern": "^[0-9]{0,18}$"},
    "Only events after this one",
    shared="LastEventId",
)
#: the parts of addresses
PARTS = {
    part.name: part
    for part in (
        Parameter("user", "path", Text, "Name of the owner", shared="User"),
        Parameter("job", "path", Text, "jobName", shared="Job"),
        Parameter("schedule", "path", Text, "Name of the schedule", shared="Schedule"),
        Parameter("node", "path", Text, "Name of the machine"),
        Parameter("maintenance", "path", Text, "Name of the maintenance"),
        Parameter("role", "path", Text, "Name of the task role"),
        Parameter(
            "index",
            "path",
            Annotated[int, Meta(ge=0, le=999_999_999)],
            "Number of the task in its role, from 0",
        ),
        Parameter("port", "path", Annotated[int, Meta(ge=0, le=99_999)], "Number of the port"),
        Parameter(
            "stream", "path", Literal["stdout", "stderr", "all"], "`all`: both, in the order of arrival"
        ),
        Parameter("fingerprint", "path", str, "`SHA256:…`, url-encoded"),
        Parameter("virtualCluster", "path", Text, "Name of the virtual cluster"),
    )
}


@dataclass(frozen=True, slots=True)
class Header:
    """A header of an answer. `shared`: the document has it once, under this name."""

    description: str
    schema: Schema = field(default_factory=lambda: TEXT)
    required: bool = False
    shared: str = ""


NEXT_PAGE = {
    "Link": Header(
        'The address of the next page, as `<…>; rel="next"`; absent on the last one. Between two pages, '
        "entries may come and go: none is left out or shown twice for that.",
        shared="Next",
    )
}


@dataclass(frozen=True, slots=True)
class Answer:
    """Successful response: JSON of a `model`, or `others` by media type."""

    description: str
    model: Model = None
    others: Mapping[str, Schema] = field(default_factory=dict)
    headers: Mapping[str, Header] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DocumentedRefusal:
    """Error response to a call. `shared`: many have it, so the document has it once, under this name."""

    status: int
    codes: Sequence[str]
    description: str
    shared: str = ""
    headers: Mapping[str, Header] = field(default_factory=dict)


def _shared(name: str, status: int, codes: str, description: str, **headers: Header) -> DocumentedRefusal:
    named = {key.replace("_", "-"): header for key, header in headers.items()}
    return DocumentedRefusal(status, codes.split(), description, name, named)


NO_API = _shared("NoApi", 404, "NoApiError", "There is no such address.")
NO_SSH = _shared(
    "NoSsh",
    404,
    "NoApiError NoJobSshInfoError",
    "There is no such address, or tasks of this scheduler cannot be reached by SSH.",
)
NO_JOB = _shared("NoJob", 404, "NoJobError NoApiError", "There is no such job, or it is another user's.")
NO_USER = _shared(
    "NoUser",
    400,
    "InvalidParametersError NoUserError",
    "The request is wrong, or there is no such user.",
)
NO_VIRTUAL_CLUSTER = _shared(
    "NoVirtualCluster", 404, "NoVirtualClusterError NoApiError", "There is no such virtual cluster."
)
NO_NODE = _shared("NoNode", 404, "NoNodeError NoApiError", "There is no such machine.")
NO_MAINTENANCE = _shared(
    "NoMaintenance", 404, "NoMaintenanceError NoApiError", "Nothing is planned by this name."
)
NO_SCHEDULE = _shared(
    "NoSchedule", 404, "NoScheduleError NoApiError", "There is no such schedule, or it is another user's."
)
CONFLICT = _shared("Conflict", 409, "ConflictJobError", "What is there already stands against it.")
TOO_MANY_JOBS = _shared(
    "TooManyJobs",
    429,
    "TooManyJobsError",
    "The user has as many jobs that have not ended as one may have.",
)
TOO_MANY_STREAMS = _shared(
    "TooManyStreams",
    429,
    "TooManyStreamsError",
    "The caller follows as many logs and events as one user may.",
)
FULL = _shared("Full", 507, "InsufficientStorageError", "It cannot be written down, so it is not promised.")
_INVALID = _shared(
    "Invalid",
    400,
    "InvalidParametersError",
    "The request is wrong: each place is named in `errors`.",
)
_UNAUTHORIZED = _shared(
    "Unauthorized",
    401,
    "UnauthorizedUserError",
    "No token, or one that is not known.",
    WWW_Authenticate=Header("How one may say who one is", required=True),
)
_FORBIDDEN = _shared("Forbidden", 403, "ForbiddenUserError", "The caller may not do this.")
_TOO_LARGE = _shared("TooLarge", 413, "BodyTooLargeError", "The body is larger than 8 MiB.")
_ENCODED = _shared("Encoded", 415, "UnsupportedMediaTypeError", "The body has a Content-Encoding.")
_FAILED = _shared(
    "Failed",
    500,
    "UnknownError",
    "A fault of the scheduler; its log says why, under the number in the message.",
)
_UNAVAILABLE = _shared(
    "Unavailable",
    503,
    "StorageUnavailableError StorageDamagedError HubUnreachableError TooBusyError",
    "Just now it cannot be done; nothing was changed.",
)


@dataclass(frozen=True, slots=True)
class Body:
    """Request body: JSON, or a form, which is the same unless `form` says otherwise."""

    model: Model
    form: Schema | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One call: `path` below `/api/v1`, with `{user}` and the like for what varies."""

    method: str
    path: str
    name: str
    tag: Literal["jobs", "watching", "cluster", "account"]
    summary: str
    answers: Mapping[int, Answer]
    description: str = ""
    parameters: Sequence[Parameter] = ()
    body: Body | None = None
    #: beside those that any call may meet
    refusals: Sequence[DocumentedRefusal] = ()
    #: False: its sentences are in one language
    speaks: bool = True
    #: True: it may be called without a token, too, where something in the query does instead
    token_optional: bool = False

    @property
    def pattern(self) -> str:
        """Return the address as a regular expression, each part that varies a group."""
        pieces = _PLACEHOLDER.split(self.path)
        for number in range(1, len(pieces), 2):
            pieces[number] = f"({_PATTERNS.get(pieces[number], '[^/]+')})"
        return "".join(
            piece if number % 2 else piece.replace(".", r"\.") for number, piece in enumerate(pieces)
        )

    @property
    def parts(self) -> Sequence[Parameter]:
        """Return what varies in the address."""
        return [PARTS[name] for name in _PLACEHOLDER.findall(self.path)]

    def all_refusals(self, *, anonymous: bool) -> Mapping[int, DocumentedRefusal]:
        """Return by status why it may be refused, those included that any call may meet."""
        usual = [_FAILED]
        if not anonymous:
            usual += [_INVALID, _UNAUTHORIZED, _FORBIDDEN, _UNAVAILABLE]
        if self.body is not None:
            usual += [_TOO_LARGE, _ENCODED]
            usual += [_FORBIDDEN, _UNAVAILABLE] if anonymous else [FULL]
        return {refusal.status: refusal for refusal in (*usual, *self.refusals)}


def operation(
    address: str,
    name: str,
    tag: Literal["jobs", "watching", "cluster", "account"],
    summary: str,
    answers: Mapping[int, Answer],
    **more: Any,
) -> Callable[[Method], Method]:
    """Declare that a method of a handler serves `address` (`GET /user/{user}`); `more`: of an Operation."""

    def declare(function: Method) -> Method:
        method, path = address.split(" ")
        one = Operation(method, path.rstrip("/"), name, tag, summary, answers, **more)
        declared: list[Operation] = vars(function).setdefault("operations", [])
        declared.insert(0, one)
        return function

    return declare


def operations_of(handler: type) -> list[Operation]:
    """Return the calls that the methods of a handler serve."""
    methods = (getattr(handler, name, None) for name in ("get", "post", "put", "delete"))
    return [one for method in methods for one in getattr(method, "operations", ())]
