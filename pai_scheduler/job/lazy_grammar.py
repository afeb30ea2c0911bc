"""Postponed loading of a grammar that importing jsonschema would wait a second for.

`rfc3987_syntax` builds its parser when it is imported, and jsonschema imports it for two formats of IRIs
(https://github.com/python-jsonschema/jsonschema/issues/1428). Jupyter Server brings both, so that every
process that checks a document against a schema pays for it, and hardly one ever looks at such a format.
"""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any

_NAME = "rfc3987_syntax"


def put_off_grammar() -> None:
    """Let `rfc3987_syntax` be loaded when it is first used; call this before jsonschema is imported.

    Does nothing where it is loaded already, or not installed.
    """
    if _NAME not in sys.modules and (spec := find_spec(_NAME)) is not None:
        module = _Later(_NAME)
        module.__spec__ = spec
        module.__path__ = list(spec.submodule_search_locations or ())
        sys.modules[_NAME] = module


class _Later(ModuleType):
    """Stands where the module will be."""

    def is_valid_syntax(self, term: str, value: str) -> bool:
        """Ask the module itself, which is loaded now."""
        return bool(self._module().is_valid_syntax(term, value))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what the import system looks for
            raise AttributeError(name)
        return getattr(self._module(), name)

    def _module(self) -> ModuleType:
        if sys.modules.get(_NAME) is self:
            del sys.modules[_NAME]
        return importlib.import_module(_NAME)
