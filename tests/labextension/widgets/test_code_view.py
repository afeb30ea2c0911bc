"""Which code goes along: as the folder's settings say, or a person, and what that means is listed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from pai_labextension.widgets.background import Background
from pai_labextension.widgets.code_file import save_settings
from pai_labextension.widgets.code_view import CodeView
from pai_labextension.widgets.language import Language
from pai_scheduler.client.storage.code import CodeSettings, read_settings
from tests.labextension.widgets.explorer.conftest import visible, write_tree
from tests.labextension.widgets.waiting import until

Make = Callable[..., CodeView]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    faults: list[str] = []
    background = Background(faults.append)

    def make(folder: Path | None, locale: str = "en") -> CodeView:
        return CodeView(Language(locale), background, folder, on_change=lambda: None, quiet=0)

    yield make
    background.close()
    assert faults == []


async def test_nothing_goes_along_unless_somebody_says_so(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    view = make(None)
    assert not view.settings.enabled
    assert not visible(view.inner)
    assert view.include.value == "**/*.py\n**/*.sh"


async def test_the_folders_own_settings_are_taken(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    save_settings(tmp_path, CodeSettings(True, ("*.py",), ("old/**",), generate_name=True))
    view = make(None)
    assert view.settings == CodeSettings(True, ("*.py",), ("old/**",))
    assert view.names_anew
    assert not visible(view.save), "they are kept already"


async def test_what_goes_along_is_listed_with_its_size(make: Make, tmp_path: Path) -> None:
    write_tree(tmp_path, train_py="x" * 1500, inner__run_sh="y", notes_txt="z")
    view = make(tmp_path)
    await until(lambda: "Goes along: 2 files, 1.5 kB" in view.files.value)
    assert "<td>inner/run.sh</td><td>1 B</td>" in view.files.value
    view.include.value = "*.txt"
    await until(lambda: "notes.txt" in view.files.value)
    assert "train.py" not in view.files.value
    view.exclude.value = "notes.txt"
    await until(lambda: "No file in" in view.files.value)


async def test_names_of_files_are_no_html(make: Make, tmp_path: Path) -> None:
    write_tree(tmp_path, **{"<img src=x>_py": ""})
    view = make(tmp_path)
    await until(lambda: "&lt;img src=x&gt;.py" in view.files.value)


async def test_what_is_chosen_is_kept_for_the_folder_when_asked(make: Make, tmp_path: Path) -> None:
    settings = tmp_path / ".pai" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n  // mine\n  "other": 1,\n  "pai.job.upload.include": ["*.x"]\n}\n')
    view = make(tmp_path)
    assert view.include.value == "*.x"
    view.include.value = "*.py\n\n  *.ipynb  "
    view.unique.value = True
    assert visible(view.save)
    view.save.click()
    assert not visible(view.save)
    text = settings.read_text()
    assert "// mine" in text
    assert '"other": 1' in text
    kept = read_settings(tmp_path)
    assert kept.enabled
    assert kept.generate_name
    assert list(kept.include) == ["*.py", "*.ipynb"]


async def test_wrong_settings_are_said_and_not_overwritten(make: Make, tmp_path: Path) -> None:
    settings = tmp_path / ".pai" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"pai.job.upload.include": 7}))
    view = make(tmp_path)
    assert "must be a list of patterns" in view.problem.value
    view.save.click()
    assert json.loads(settings.read_text()) == {"pai.job.upload.include": 7}
    settings.write_text("{ no json")
    view.folder.value = f"{tmp_path}/"
    assert "line 1" in view.problem.value
    view.save.click()
    assert settings.read_text() == "{ no json"


async def test_another_folder_has_other_settings(make: Make, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    save_settings(other, CodeSettings(True, ("*.R",)))
    view = make(tmp_path)
    view.folder.value = str(other)
    assert view.path == other
    assert view.settings.include == ("*.R",)
