"""Says in a sentence why a YAML file of an administrator cannot be read."""

from __future__ import annotations

import yaml

from pai_scheduler.i18n import Message, msg

#: What reading such a file raises; ValueError: text that is not UTF-8, a date that there is not (2026-13-01).
UNREADABLE = (OSError, ValueError, yaml.YAMLError)


def explain(error: OSError | ValueError | yaml.YAMLError) -> Message | str:
    """Return what is wrong, with the place where it is known."""
    match error:
        case OSError():
            return error.strerror or str(error)
        case UnicodeDecodeError():
            return msg("it is not UTF-8 text")
        case yaml.MarkedYAMLError():
            mark = error.problem_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            return msg(
                "line {line}, column {column}: {problem}", line=line, column=column, problem=error.problem
            )
    return str(error)
