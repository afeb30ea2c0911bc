"""Writes the code settings of a folder down, where the command line and the documents' editor find them."""

from __future__ import annotations

from pathlib import Path

from pai_scheduler.client.storage.code import CodeSettings, read_settings

from .json_edit import edit

_FILE = Path(".pai") / "settings.json"


def save_settings(folder: Path, settings: CodeSettings) -> None:
    """Write `.pai/settings.json`; what else stands in it stays as it is, comments too.

    OSError; CodeError where what stands there now cannot be read.
    """
    read_settings(folder)
    file = folder / _FILE
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        text = "{}"
    for key, value in (
        ("pai.job.upload.enabled", settings.enabled),
        ("pai.job.upload.include", list(settings.include)),
        ("pai.job.upload.exclude", list(settings.exclude)),
        ("pai.job.generateJobName.enabled", settings.generate_name),
    ):
        text = edit(text, (key,), value)
    file.parent.mkdir(exist_ok=True)
    temporary = file.with_name(f"{file.name}.new")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(file)
