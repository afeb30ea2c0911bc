"""JSON text, with comments and trailing commas or without; an error names its place and what to do."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from pai_scheduler.i18n import Message, msg

#: A string, or a comment; an unfinished string ends with its line (JSON has no line breaks in strings).
_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"?|//[^\n\r]*|/\*.*?(?P<end>\*/|\Z)', re.DOTALL)
_NOT_BLANK = re.compile(r"[^\n\r]")
#: Kept: a string, and a comma with no value before it, which is an error. `end`: a comma before a bracket.
_STRING_OR_COMMA = re.compile(
    r'"(?:\\.|[^"\\\n])*"?|[\[{:,][ \t\r\n]*,|(?P<end>,)(?=[ \t\r\n]*[\]}])', re.DOTALL
)
#: Characters of the longest text that the REST API takes with comments: reading them takes long, and nobody
#: writes more.
LONGEST_JSONC = 256 * 1024
#: Python reads no integer longer than 4300 digits; no job needs half of that.
_LONG_NUMBER = re.compile(r"\d{2000,}")


class JsonTextError(ValueError):
    """A text is no JSON. `message` says what is wrong; line and column count from 1."""

    def __init__(self, message: Message, line: int, column: int) -> None:
        super().__init__(str(message))
        self.message = message
        self.line = line
        self.column = column


def loads_json(text: str) -> Any:
    """Read JSON as RFC 8259 has it (no NaN, no comments); JsonTextError where it is none."""
    text = text.removeprefix("\ufeff")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise JsonTextError(_sentence(error.msg), error.lineno, error.colno) from None
    except _ConstantError as error:
        raise _at(text, _constant_position(text, error.name), _no_number(error.name)) from None
    except RecursionError:
        raise _at(text, 0, msg("Lists and objects are nested too deeply.")) from None
    except ValueError:
        # the only other complaint of the json module: too many digits
        match = _LONG_NUMBER.search(text)
        raise _at(text, match.start() if match else 0, msg("A number has too many digits.")) from None


def loads_jsonc(text: str) -> Any:
    """Read JSON in which `//` and `/* */` comments, and commas before a closing bracket, may stand.

    That is JSONC, as VS Code writes it. JsonTextError, with line and column in the text as given.
    """
    text = text.removeprefix("\ufeff")
    try:
        # (nearly all that programs send is plain)
        return loads_json(text)
    except JsonTextError:
        return loads_json(_without_trailing_commas(_without_comments(text)))


def _without_comments(text: str) -> str:
    """Put blanks in the place of comments, so that everything else stays where it is."""

    def blank(match: re.Match[str]) -> str:
        token = match.group()
        if token.startswith('"'):
            return token
        if token.startswith("/*") and not match["end"]:
            raise _at(text, match.start(), msg("A comment begins here (/*) and is never ended (*/)."))
        return _NOT_BLANK.sub(" ", token)

    return _TOKEN.sub(blank, text)


def _without_trailing_commas(text: str) -> str:
    return _STRING_OR_COMMA.sub(lambda found: " " if found["end"] else found.group(), text)


class _ConstantError(Exception):
    def __init__(self, name: str) -> None:
        self.name = name


def _no_constant(name: str) -> NoReturn:
    raise _ConstantError(name)


#: (`json.loads` makes one for each text)
_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _constant_position(text: str, name: str) -> int:
    """Find a constant outside of strings."""
    for match in re.finditer(rf'"(?:\\.|[^"\\])*"|{name}', text, re.DOTALL):
        if match.group() == name:
            return match.start()
    return 0


def _no_number(name: str) -> Message:
    return msg("{name} is no number in JSON.", name=name)


def _at(text: str, position: int, message: Message) -> JsonTextError:
    line_start = text.rfind("\n", 0, position) + 1
    return JsonTextError(message, text.count("\n", 0, position) + 1, position - line_start + 1)


def _sentence(problem: str) -> Message:
    """Put the json module's complaint into a sentence that can be translated."""
    for start, message in (
        (
            "Expecting property name",
            msg('A field name in double quotes ("…") is expected here, or a comma is too many.'),
        ),
        ("Illegal trailing comma", msg("The comma before the closing bracket is too many.")),
        ("Expecting ','", msg("A comma is missing here, or a closing bracket.")),
        ("Expecting ':'", msg("A colon is missing here, after the name of the field.")),
        ("Expecting value", msg("A value is expected here.")),
        ("Unterminated string", msg("The text that begins here has no closing quotation mark.")),
        (
            "Invalid control character",
            msg(r"A line break or control character stands within a text: write it as \n."),
        ),
        ("Invalid \\u", msg(r"After \u four hexadecimal digits are expected.")),
        ("Invalid \\escape", msg(r"A backslash within a text must be written twice: \\.")),
        ("Extra data", msg("The JSON ends before here; there is something after it.")),
    ):
        if problem.startswith(start):
            return message
    return msg("This is no JSON: {problem}", problem=problem)
