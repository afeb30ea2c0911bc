"""Reads the scheduler's settings from a YAML file, each under the long name of its option."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.i18n import Message, msg

from .yaml_problems import UNREADABLE, explain

#: What a file must not hold: it would be asked for again at every start.
FOR_ONE_START = ("start-empty", "new-keys")
_NO_SETTINGS = ("help", "config", *FOR_ONE_START)
#: The option that is a folder where it is no address.
_STORAGE = "storage"


class _WrongSetting(Exception):
    """A setting that cannot be used, and why."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


def parse_options(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse a command line; what it does not say comes from the file that its `--config` names.

    An option that may be given several times has what both say. Raises StartError with the file, the line
    and what to do where the file cannot be used, and SystemExit where the command line is wrong.
    """
    options = parser.parse_args(argv)
    if options.config is None:
        return options
    parser.set_defaults(**read_settings(options.config, parser))
    return parser.parse_args(argv)


def settings_of(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Return the options that may stand in a settings file, by their names in it."""
    names = {
        action.option_strings[-1].removeprefix("--"): action
        for action in parser._actions
        if action.option_strings
    }
    return {name: action for name, action in names.items() if name not in _NO_SETTINGS}


def read_settings(path: Path, parser: argparse.ArgumentParser) -> dict[str, Any]:
    """Read a settings file; return its values by the names that the parser's options have in a program.

    A relative path in it begins at the file's own folder. Raises StartError.
    """
    folder = path.expanduser().absolute().parent
    line: int | None = None
    try:
        text = path.expanduser().read_text(encoding="utf-8")
        lines = _lines_of_keys(yaml.compose(text, Loader=yaml.SafeLoader))
        settings = settings_of(parser)
        values = {}
        for name, value in (yaml.safe_load(text) or {}).items():
            line = lines[str(name)]
            action = _find(settings, str(name))
            values[action.dest] = _value(str(name), action, value, folder)
        return values
    except UNREADABLE as error:
        reason: object = explain(error)
    except _WrongSetting as error:
        reason = error.message if line is None else msg("line {line}: {why}", line=line, why=error.message)
    raise StartError(msg("The settings file {file} cannot be used: {reason}", file=path, reason=reason))


def _lines_of_keys(root: yaml.Node | None) -> Mapping[str, int]:
    """Return in which line each key stands; refuses what is no mapping, and a key that stands there twice."""
    if root is None or root.tag == "tag:yaml.org,2002:null":
        return {}
    if not isinstance(root, yaml.MappingNode):
        raise _WrongSetting(msg("it must hold settings, one a line: NAME: VALUE"))
    lines: dict[str, int] = {}
    for key, _ in root.value:
        name, line = str(key.value), key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
            raise _WrongSetting(msg("line {line}: the name of a setting must be text", line=line))
        if name in lines:
            raise _WrongSetting(
                msg(
                    "line {line}: {name} stands in line {first}, too", line=line, name=name, first=lines[name]
                )
            )
        lines[name] = line
    return lines


def _find(settings: Mapping[str, argparse.Action], name: str) -> argparse.Action:
    if name in settings:
        return settings[name]
    if name in FOR_ONE_START:
        raise _WrongSetting(
            msg("{name} is for one start only: give --{name} in the command line instead", name=name)
        )
    near = get_close_matches(name.replace("_", "-"), settings, n=1)
    if near:
        raise _WrongSetting(msg("there is no setting {name}. Is {near} meant?", name=name, near=near[0]))
    raise _WrongSetting(
        msg("there is no setting {name}. There are: {known}", name=name, known=", ".join(sorted(settings)))
    )


def _value(name: str, action: argparse.Action, given: object, folder: Path) -> object:
    """Return a setting's value as the parser would have it; raises _WrongSetting."""
    if action.nargs == 0:
        return _of_kind(name, given, (bool,), msg("true or false"))
    if isinstance(action.default, list):
        texts = _of_kind(name, given, (list,), msg("a list of texts"))
        return [_of_kind(name, one, (str,), msg("a list of texts")) for one in texts]
    if action.type is int:
        return _of_kind(name, given, (int,), msg("a whole number"))
    if action.type is float:
        return float(_of_kind(name, given, (int, float), msg("a number")))
    text = _of_kind(name, given, (str,), msg("text (numbers and the like between quotes)"))
    if action.choices is not None and text not in action.choices:
        raise _WrongSetting(
            msg(
                "{name} must be one of {choices}, not {given}",
                name=name,
                choices=", ".join(action.choices),
                given=text,
            )
        )
    if action.type is Path:
        return folder / Path(text).expanduser()
    if name == _STORAGE and text.strip() and not text.strip().startswith("file:") and "://" not in text:
        return str(folder / Path(text.strip()).expanduser())
    return text


def _of_kind(name: str, given: Any, kinds: tuple[type, ...], expected: Message) -> Any:
    # (True is an int to Python)
    if isinstance(given, kinds) and (isinstance(given, bool) <= (bool in kinds)):
        return given
    raise _WrongSetting(
        msg("{name} must be {expected}, not {given}", name=name, expected=expected, given=repr(given))
    )
