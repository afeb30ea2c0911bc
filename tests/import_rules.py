"""A contract for import-linter: each folder names the folders that it may import, and imports no others.

Run by `lint-imports`, which finds the class by `contract_types` in pyproject.toml.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class AllowedImports(Contract):
    """Check that every import between folders of `package` is one of those in `folders`.

    A line of `folders` is `folder: what it may import`, all named from `package` on. A folder within a
    folder that has a line of its own is a folder of its own. What may be imported is such a folder, or one
    module of it.
    """

    package = fields.StringField()
    folders = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002 (import-linter calls it so)
        """Find the imports that no line allows, and the modules that are in no folder."""
        rules = dict(self._rules())
        wrong = sorted(
            f"{importer} imports {imported}"
            for importer in graph.modules
            if (folder := self._folder(importer, rules)) is not None
            for imported in graph.find_modules_directly_imported_by(importer)
            if self._folder(imported, rules) not in (None, folder, *rules[folder])
            and imported.removeprefix(f"{self.package}.") not in rules[folder]
        )
        homeless = sorted(
            f"{module} is in no folder that has a line"
            for module in graph.modules
            if module.startswith(f"{self.package}.") and self._folder(module, rules) is None
        )
        return ContractCheck(kept=not wrong and not homeless, metadata={"found": [*wrong, *homeless]})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print what was found, a line each."""
        for line in check.metadata["found"]:
            output.print_error(line)

    def _rules(self) -> Iterator[tuple[str, frozenset[str]]]:
        for line in self.folders:  # type: ignore[attr-defined]
            folder, _, allowed = line.partition(":")
            yield folder.strip(), frozenset(allowed.split())

    def _folder(self, module: str, rules: Mapping[str, frozenset[str]]) -> str | None:
        """Return the innermost folder with a line that `module` is in, None where there is none."""
        name = module.removeprefix(f"{self.package}.")
        if name == module:
            return None
        while name and name not in rules:
            name = name.rpartition(".")[0]
        return name or None
