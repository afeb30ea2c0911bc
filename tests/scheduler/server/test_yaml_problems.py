"""Why a YAML file cannot be read is said with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from pai_scheduler.server.components import UNREADABLE, explain


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file or directory"),
        (b"\xff", "it is not UTF-8 text"),
        (b"a: [1", "line 1, column 6: expected ',' or ']', but got '<stream end>'"),
        (b"a: 2026-13-01", "month must be in 1..12"),
    ],
)
def test_what_is_wrong_is_one_sentence(content: bytes | None, said: str, tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UNREADABLE) as raised:
        yaml.safe_load(file.read_text(encoding="utf-8"))
    assert isinstance(raised.value, UNREADABLE)
    assert str(explain(raised.value)) == said
