"""All benchmarks in one table, beside their peers: `python -m tests.benchmarks` (`make bench`).

Each suite runs in a process of its own. A wrong outcome ends with exit code 1, a slow one does not.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import msgspec
from msgspec import structs

from tests.testbed.disk import file_system, journaled_disk
from tests.testbed.machine import CannotError

from .growth import draw, exponent, series
from .rows import Row, Suite, UnavailableError, table

SUITES = (
    "turnover",
    "submits",
    "restart",
    "first_instruction",
    "trivial_jobs",
    "containers",
    "idle",
    "container_log",
    "log_lines",
    "notebooks",
)
#: Suites of which `--short` has a part: what starts within a second and needs no image.
SHORT = ("turnover",)
#: The exit code of a suite that cannot be measured here.
UNAVAILABLE = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suites that are wanted; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SUITES, help="suites (all)")
    parser.add_argument(
        "--short", action="store_true", help="a little of each: shows that outcomes are right"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("build/bench"), help="for rows and pictures (%(default)s)"
    )
    parser.add_argument("--here", choices=SUITES, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.here:
        return _measure(options.here, options.out, short=options.short)
    print(f"{os.cpu_count()} cores, load of the machine {os.getloadavg()[0]:.1f}", flush=True)
    with ExitStack() as stack:
        try:
            # (what is short says nothing of speed)
            folder = None if options.short else stack.enter_context(journaled_disk())
        except CannotError as error:
            folder, reason = None, f" ({error})"
        else:
            reason = ""
        files = folder or Path(tempfile.gettempdir())
        print(f"The suites' files are on {file_system(files)}{reason}; Docker's are not.\n", flush=True)
        return _run_all(options, {**os.environ, "TMPDIR": str(files)})


def _run_all(options: argparse.Namespace, environment: Mapping[str, str]) -> int:
    wrong = []
    rows: list[Row] = []
    for name in options.only or (SHORT if options.short else SUITES):
        _file(options.out, name).unlink(missing_ok=True)
        command = [sys.executable, "-m", "tests.benchmarks", "--here", name, "--out", str(options.out)]
        if options.short:
            command.append("--short")
        code = subprocess.run(command, check=False, env=environment).returncode
        if code not in (0, UNAVAILABLE):
            wrong.append(name)
        rows += read(_file(options.out, name))
    if options.short:  # what was measured for a moment, or on a small cluster, says nothing of a goal
        rows = [structs.replace(row, goal=None) for row in rows]
    print(table(rows))
    for name, members in series(rows).items():
        draw(name, members, options.out / f"{name.replace(' ', '-')}.svg")
        print(f"{name}: size to the power of {exponent(members):.2f}")
    for name in wrong:
        print(f"{name}: a wrong outcome, see above", file=sys.stderr)
    return 1 if wrong else 0


def read(file: Path) -> list[Row]:
    """Read the rows that a suite has written; none where it wrote none."""
    lines = file.read_bytes().splitlines() if file.exists() else []
    return [msgspec.json.decode(line, type=Row) for line in lines]


def _file(out: Path, name: str) -> Path:
    return out / f"{name}.jsonl"


def _measure(name: str, out: Path, *, short: bool) -> int:
    """Measure one suite in this process; each row is kept as soon as it is there."""
    suite = cast("Suite", importlib.import_module(f"tests.benchmarks.{name}"))
    try:
        with _file(out, name).open("ab") as file:
            for row in suite.rows(short=short):
                file.write(msgspec.json.encode(row) + b"\n")
                file.flush()
                print(f"{name}: {row.measure}: {row.median:,.4g} {row.unit}", file=sys.stderr)
    except UnavailableError as error:
        print(f"{name}: not measured: {error}", file=sys.stderr)
        return UNAVAILABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
