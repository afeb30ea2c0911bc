"""Why a storage did not do something: the kind for programs, the sentence for people."""

from __future__ import annotations

from enum import Enum

from pai_scheduler.i18n import Message


class Problem(Enum):
    """What kept a storage from doing something."""

    NOT_FOUND = "not-found"
    EXISTS = "exists"
    DENIED = "denied"
    NOT_A_FOLDER = "not-a-folder"
    IS_A_FOLDER = "is-a-folder"
    NOT_EMPTY = "not-empty"
    #: a name, a number or a combination that there cannot be
    INVALID = "invalid"
    NO_SPACE = "no-space"
    TOO_LARGE = "too-large"
    #: this storage cannot do it, and never will
    UNSUPPORTED = "unsupported"
    #: it does not answer now; it may go better later
    UNAVAILABLE = "unavailable"


#: What may go better another time, without anybody changing what was asked.
PASSING = frozenset({Problem.UNAVAILABLE, Problem.NO_SPACE})


class StorageError(Exception):
    """A storage did not do something; `message` says what, why, and what to do."""

    def __init__(self, problem: Problem, message: Message) -> None:
        super().__init__(str(message))
        self.problem = problem
        self.message = message
