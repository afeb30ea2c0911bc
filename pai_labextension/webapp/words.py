"""What is said of a service that does not answer."""

from __future__ import annotations

import signal

from pai_labextension.messages import counted, msg
from pai_scheduler.i18n import Message

from .program import Program, State


def title_of(program: Program) -> Message:
    """Say what it does, in a few words."""
    title = program.command.title
    match program.state:
        case State.STARTING:
            return msg("{title} is starting", title=title)
        case State.FAILED:
            return msg("{title} did not start", title=title)
        case State.ENDED:
            return msg("{title} has ended", title=title)
    return msg("{title} is running", title=title)


def sentence_of(program: Program) -> Message:
    """Say why it does not answer."""
    code, seconds = program.exit_code, program.command.start_seconds
    if program.state is State.STARTING:
        return msg("It is shown here as soon as it answers.")
    if program.reason:
        return msg("It cannot be started: {reason}", reason=program.reason)
    if code is None:
        return counted(
            "It did not answer within {count} second, and was ended.",
            "It did not answer within {count} seconds, and was ended.",
            count=seconds,
        )
    if code == -signal.SIGKILL:
        return msg(
            "It was ended by signal 9. Where nobody sent that, the memory was not enough: choose more at the "
            "server's next start."
        )
    if code < 0:
        return msg("It was ended by signal {number}.", number=-code)
    return msg("It ended by itself, with exit code {code}.", code=code)
