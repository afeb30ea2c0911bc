"""In which language the widgets speak."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_labextension.widgets.language import Language, default_locale
from pai_scheduler.i18n import msg


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "config"))


@pytest.mark.parametrize(
    ("environment", "locale"),
    [
        ({}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh_CN"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "en_GB.UTF-8"}, "en"),
        ({"LANG": "de_DE.UTF-8", "PAI_LOCALE": "zh-CN"}, "zh_CN"),
        ({"LANG": "fr_FR.UTF-8"}, "en"),
    ],
)
def test_the_environment_says_the_language(environment: dict[str, str], locale: str) -> None:
    assert default_locale(environment) == locale


def _choose_in_lab(folder: Path, text: str) -> dict[str, str]:
    setting = folder / "@jupyterlab" / "translation-extension" / "plugin.jupyterlab-settings"
    setting.parent.mkdir(parents=True)
    setting.write_text(text)
    return {"JUPYTERLAB_SETTINGS_DIR": str(folder), "LANG": "C.UTF-8"}


def test_the_language_chosen_in_jupyterlab_counts_more_than_the_machines(tmp_path: Path) -> None:
    environment = _choose_in_lab(tmp_path, '{\n  // Language locale\n  "locale": "zh_CN"\n}')
    assert default_locale(environment) == "zh_CN"
    assert default_locale({**environment, "PAI_LOCALE": "en"}) == "en"


@pytest.mark.parametrize("text", ['{"locale": "default"}', "{", "[]", '{"locale": 3}'])
def test_a_lab_setting_that_says_nothing_is_passed_over(tmp_path: Path, text: str) -> None:
    assert default_locale(_choose_in_lab(tmp_path, text)) == "en"


def test_sentences_of_ours_of_others_and_of_the_schema_are_said_in_the_same_language() -> None:
    say = Language("zh_CN")
    assert say("Submit job") == "提交作业"
    assert say.of(msg("a list")) != "a list"
    assert say.term("Job name") != "Job name"
    assert Language("en")("Submit job") == "Submit job"
