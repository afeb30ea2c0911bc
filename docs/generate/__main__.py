"""`python -m docs.generate`: writes every generated page, and tells which have changed."""

from __future__ import annotations

from pathlib import Path

from .pages import DOCS, pages


def main() -> None:
    """Write the pages."""
    for name, text in pages().items():
        file = DOCS / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            print(f"{file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file}: changed")


if __name__ == "__main__":
    main()
