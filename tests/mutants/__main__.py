"""Faults put in on purpose, and which of them the tests find: `python -m tests.mutants run`.

A mutant is a function, some of its lines and what stands in their place, so that it outlives a move of the
function. `run` makes each in a copy of the tree and runs the tests that go through these lines until the
first fails; which tests do, a first run under coverage tells. `choose` wrote the list.
"""

from __future__ import annotations

import argparse
import ast
import collections
import concurrent.futures
import difflib
import itertools
import json
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from coverage import CoverageData

ROOT = Path(__file__).parents[2]
CHOSEN = Path(__file__).parent / "chosen.jsonl"
#: where the parts lie from which mutants are chosen
PARTS = (
    "pai_scheduler/core/*.py",
    "pai_scheduler/cluster/*.py",
    "pai_scheduler/store/*.py",
    "pai_scheduler/storage/paths.py",
    "pai_scheduler/storage/folder/resolve.py",
    "pai_scheduler/storage/folder/tree.py",
    "pai_scheduler/ssh/keys.py",
    "pai_scheduler/service/ssh_a*.py",
    "pai_scheduler/service/admission.py",
)
_TREES = ("pai_scheduler", "pai_spawner", "pai_labextension", "hub_config", "tests", "docs", "notebooks")
_SECONDS = 60
#: pytest's exit codes: a test failed; and no test ran, as all were removed or are not to be run here
_FAILED, _NOTHING_RAN = 1, 5
#: A test that goes through few lines is likely to be about them.
_MOST_TESTS = 400


@dataclass(frozen=True)
class Mutant:
    """Lines of a function and what takes their place; `nth` of those that are alike in it, from 0."""

    path: str
    function: str
    before: str
    after: str
    nth: int

    def find(self, root: Path) -> tuple[Path, int] | None:
        """Return the file that has the function today and the line, from 0, where `before` begins in it."""
        wanted = [line.strip() for line in self.before.splitlines()]
        near = sorted((root / self.path).parent.glob("*.py"))
        paths = dict.fromkeys([root / self.path, *near, *sorted(root.glob("pai_*/**/*.py"))])
        # (a function may have come to another class)
        for same in (self.function.__eq__, lambda name: name.split(".")[-1] == self.function.split(".")[-1]):
            for path in paths:
                if not path.exists() or wanted[0] not in (text := path.read_text(encoding="utf-8")):
                    continue
                lines = [line.strip() for line in text.splitlines()]
                spans = [span for name, spans in _functions(path).items() if same(name) for span in spans]
                for first, last in spans:
                    places = (at for at in range(first, last) if lines[at : at + len(wanted)] == wanted)
                    if (at := next(itertools.islice(places, self.nth, None), None)) is not None:
                        return path, at
        return None

    def mutated(self, text: str, at: int) -> str:
        """Return a file's text with the mutant in it; the lines may be indented otherwise than before."""
        lines = text.splitlines()
        old, new = self.before.splitlines(), self.after.splitlines()
        shift = _indent(lines[at]) - _indent(old[0])
        lines[at : at + len(old)] = [" " * max(0, _indent(line) + shift) + line.strip() for line in new]
        return "\n".join(lines) + "\n"


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _functions(path: Path) -> dict[str, list[tuple[int, int]]]:
    """Return the lines, from 0, of each function of a file by its qualified name."""
    found: dict[str, list[tuple[int, int]]] = collections.defaultdict(list)

    def walk(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                own = f"{name}.{child.name}".lstrip(".")
                if not isinstance(child, ast.ClassDef):
                    found[own].append((child.lineno - 1, child.end_lineno or child.lineno))
                walk(child, own)
            else:
                walk(child, name)

    walk(ast.parse(path.read_text(encoding="utf-8")), "")
    return found


def choose(number: int, seed: int) -> list[Mutant]:
    """Choose mutants at random: places first, then what is done there, by the operators of cosmic-ray."""
    import cosmic_ray.plugins  # only for this: installed by hand
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code

    places: dict[tuple[str, int, int, str], list[tuple[str, int]]] = collections.defaultdict(list)
    for path in sorted(path for part in PARTS for path in ROOT.glob(part)):
        inside = {
            line
            for spans in _functions(path).values()
            for first, last in spans
            for line in range(first, last)
        }
        nodes = list(ast_nodes(get_ast(path.read_text(encoding="utf-8"))))
        for name in sorted(cosmic_ray.plugins.operator_names()):
            if "Variable" in name:
                continue
            operator = cosmic_ray.plugins.get_operator(name)()
            positions = [position for node in nodes for position in operator.mutation_positions(node)]
            for occurrence, (start, _) in enumerate(positions):
                if start[0] - 1 in inside:
                    place = (str(path.relative_to(ROOT)), start[0], start[1], name.partition("_")[0])
                    places[place].append((name, occurrence))
    chance = random.Random(seed)  # noqa: S311  (the same every time)
    order = sorted(places)
    chance.shuffle(order)
    chosen: list[Mutant] = []
    for place in order:
        path = ROOT / place[0]
        name, occurrence = chance.choice(places[place])
        text = path.read_text(encoding="utf-8")
        after = mutate_code(text, cosmic_ray.plugins.get_operator(name)(), occurrence)
        mutant = _between(place[0], text, after or text)
        if mutant is not None and mutant not in chosen:
            chosen.append(mutant)
        if len(chosen) == number:
            break
    return chosen


def _between(name: str, text: str, after: str) -> Mutant | None:
    """Make a mutant of two texts; none where they mean the same, or the second is no Python."""
    try:
        if _meaning(text) == _meaning(after):
            return None
    except SyntaxError:
        return None
    old, new = text.splitlines(), after.splitlines()
    changes = [
        change
        for change in difflib.SequenceMatcher(None, old, new, False).get_opcodes()
        if change[0] != "equal"
    ]
    if len(changes) != 1 or changes[0][0] != "replace":
        return None
    _, first, last, start, end = changes[0]
    inside = [
        (span[1] - span[0], function, span)
        for function, spans in _functions(ROOT / name).items()
        for span in spans
        if span[0] <= first < span[1]
    ]
    _, function, span = min(inside)
    wanted = [line.strip() for line in old[first:last]]
    alike = [
        at
        for at in range(span[0], span[1])
        if [line.strip() for line in old[at : at + len(wanted)]] == wanted
    ]
    return Mutant(name, function, "\n".join(old[first:last]), "\n".join(new[start:end]), alike.index(first))


def _meaning(text: str) -> str:
    """Return what a program does: its tree without the types, which nothing here reads."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return ast.dump(tree)


def cover(copy: Path, workers: int, chosen: str) -> Path:
    """Run the tests once and note which go through which line; returns coverage's file."""
    data = copy / ".coverage"
    command = [*_pytest(), "-n", str(workers), "-m", chosen, "--cov=pai_scheduler", "--cov-context=test"]
    (copy / "coverage.cfg").write_text("[run]\nsource = pai_scheduler\n", encoding="utf-8")
    command += ["--cov-config=coverage.cfg", "--cov-report="]
    subprocess.run(command, cwd=copy, env=_environment(copy), check=False)
    return data


def _pytest() -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", "--tb=no"]


def _environment(copy: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}


def copy_of_the_tree(folder: Path) -> Path:
    """Copy what tests need."""
    for name in _TREES:
        ignore = shutil.ignore_patterns("node_modules", "__pycache__", "*.pyc", "test-artifacts")
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignore)
    for file in ROOT.iterdir():
        if file.is_file():
            shutil.copy2(file, folder / file.name)
    return folder


def tests_of(data: CoverageData, copy: Path, mutant: Mutant) -> list[str]:
    """Return the tests that go through a mutant's lines, those first that go through least of the file."""
    found = mutant.find(copy)
    if found is None:
        return []
    path, at = found
    by_line = data.contexts_by_lineno(str(path))
    size = collections.Counter(context for contexts in by_line.values() for context in contexts)
    lines = range(at + 1, at + 1 + len(mutant.before.splitlines()))
    going = {context for line in lines for context in by_line.get(line, ()) if "|" in context}
    names = sorted(going, key=lambda context: (size[context], context))
    return list(dict.fromkeys(name.rpartition("|")[0] for name in names))[:_MOST_TESTS]


def outcome(copy: Path, mutant: Mutant, tests: list[str]) -> str:
    """Put a mutant in, run its tests, take it out again."""
    found = mutant.find(copy)
    if found is None:
        return "not there"
    if not tests:
        return "no test"
    path, at = found
    text = path.read_text(encoding="utf-8")
    arguments = copy / "tests-to-run"
    arguments.write_text("\n".join(tests) + "\n", encoding="utf-8")
    try:
        path.write_text(mutant.mutated(text, at), encoding="utf-8")
        command = [*_pytest(), "-x", "-p", "no:randomly", f"@{arguments}"]
        ran = subprocess.run(
            command,
            cwd=copy,
            env=_environment(copy),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "time"
    finally:
        path.write_text(text, encoding="utf-8")
    if ran.returncode == 0:
        return "survived"
    first = next((line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))), "")
    return f"killed {first}" if ran.returncode != _NOTHING_RAN else "no test"


def run(mutants: list[Mutant], workers: int, chosen: str) -> Iterator[tuple[Mutant, str]]:
    """Try all mutants."""
    with tempfile.TemporaryDirectory() as folder:
        copies: queue.SimpleQueue[Path] = queue.SimpleQueue()
        for worker in range(workers):
            copies.put(copy_of_the_tree(Path(folder, str(worker))))
        first = copies.get()
        data = CoverageData(str(cover(first, workers, chosen)))
        data.read()
        tests = {mutant: tests_of(data, first, mutant) for mutant in mutants}
        copies.put(first)

        def try_one(mutant: Mutant) -> str:
            copy = copies.get()
            try:
                return outcome(copy, mutant, tests[mutant])
            finally:
                copies.put(copy)

        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            yield from zip(mutants, pool.map(try_one, mutants), strict=True)


def main() -> None:
    """Read the command line, do what it asks."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    kinds = parser.add_subparsers(dest="what", required=True)
    chooser = kinds.add_parser(
        "choose", help="choose mutants and write the list anew (needs `pip install cosmic-ray`)"
    )
    chooser.add_argument("--number", type=int, default=300)
    chooser.add_argument("--seed", type=int, default=32)
    runner = kinds.add_parser("run", help="try the mutants of the list")
    runner.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    runner.add_argument("--tests", default="not daemon and not long", help="those of pytest's -m")
    runner.add_argument("--first", type=int, default=None, help="only so many of the list")
    runner.add_argument("--to", type=Path, help="a file for the outcomes, JSON lines")
    given = parser.parse_args()
    if given.what == "choose":
        lines = [
            json.dumps(asdict(mutant), ensure_ascii=False) for mutant in choose(given.number, given.seed)
        ]
        CHOSEN.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return
    with tokenize.open(CHOSEN) as file:
        mutants = [Mutant(**json.loads(line)) for line in file]
    counts: collections.Counter[str] = collections.Counter()
    for mutant, came in run(mutants[: given.first], given.workers, given.tests):
        counts[came.partition(" ")[0] if came.startswith("killed") else came] += 1
        print(f"{came[:110]:110} {mutant.path} {mutant.function}: {mutant.after.strip()}", flush=True)
        if given.to:
            with given.to.open("a", encoding="utf-8") as out:
                out.write(json.dumps({**asdict(mutant), "outcome": came}, ensure_ascii=False) + "\n")
    print(dict(counts))


if __name__ == "__main__":
    main()
