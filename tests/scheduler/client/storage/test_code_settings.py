"""Which files go along with a job: settings as the documents have them, globs, and how much there may be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pai_scheduler.client.storage.code_settings import CodeError, CodeSettings, plan, read_settings

#: From the documents' HDFS tutorial, word for word.
DOCUMENTED = """
    {
        "pai.job.upload.enabled": true,
        "pai.job.upload.exclude": [],
        "pai.job.upload.include": [
            "**/*.py",
            "**/*.sh"
        ],
        "pai.job.generateJobName.enabled": true
    }
"""


def write(folder: Path, name: str, text: str | bytes = "x") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def chosen(folder: Path, include: list[str], exclude: list[str] | None = None) -> list[str]:
    settings = CodeSettings(include=include, exclude=exclude or [])
    return [file.name for file in plan(folder, settings).files]


@pytest.mark.parametrize("name", [".pai/settings.json", ".vscode/settings.json"])
def test_the_documents_settings_are_read(folder: Path, name: str) -> None:
    write(folder, name, DOCUMENTED)
    assert read_settings(folder) == CodeSettings(True, ["**/*.py", "**/*.sh"], [], True)


def test_without_settings_nothing_goes_along(folder: Path) -> None:
    settings = read_settings(folder)
    assert not settings.enabled
    assert list(settings.include) == ["**/*.py", "**/*.sh"]
    assert not settings.generate_name


def test_our_file_comes_before_the_editors_key_by_key(folder: Path) -> None:
    write(folder, ".vscode/settings.json", DOCUMENTED)
    write(folder, ".pai/settings.json", '{"pai.job.generateJobName.enabled": false, "other": 1}')
    settings = read_settings(folder)
    assert (settings.enabled, settings.generate_name) == (True, False)


def test_an_editors_comments_and_commas_are_understood(folder: Path) -> None:
    write(folder, ".vscode/settings.json", '{\n// on\n"pai.job.upload.enabled": true, /* last */\n}')
    assert read_settings(folder).enabled


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"pai.job.upload.enabled": "yes"}', "pai.job.upload.enabled must be true or false"),
        ('{"pai.job.upload.include": "**/*.py"}', "pai.job.upload.include must be a list of patterns"),
        ('{"pai.job.upload.exclude": [1]}', "pai.job.upload.exclude must be a list of patterns"),
        (
            '{"pai.job.upload.enabld": true}',
            "no setting pai.job.upload.enabld; did you mean pai.job.upload.enabled?",
        ),
        ('{"pai.job.generateJobName.enable": true}', "did you mean pai.job.generateJobName.enabled?"),
        ("{\n!", "line 2, column 1"),
        ("[]", "holds no JSON object"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_wrong_settings_are_said_with_their_file(folder: Path, text: str | bytes, said: str) -> None:
    file = write(folder, ".pai/settings.json", text)
    with pytest.raises(CodeError) as wrong:
        read_settings(folder)
    assert said in str(wrong.value)
    assert str(file) in str(wrong.value)


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (["**/*.py"], [], ["a.py", "sub/b.py", "sub/deep/c.py"]),
        (["*.py"], [], ["a.py"]),
        (["**/*.py", "**/*.sh"], ["sub/deep/**"], ["a.py", "run.sh", "sub/b.py"]),
        (["**/*.py"], ["**/deep"], ["a.py", "sub/b.py"]),
        (["**"], ["**/*.py", "data"], ["run.sh"]),
        (["sub"], [], ["sub/b.py", "sub/deep/c.py"]),
        (["./sub/"], ["sub/b.py"], ["sub/deep/c.py"]),
        (["*.{sh,py}"], [], ["a.py", "run.sh"]),
        (["sub/?.py", "[ar]*.??"], [], ["a.py", "run.sh", "sub/b.py"]),
        (["**/*"], ["**/.*"], ["a.py", "data/x.bin", "run.sh", "sub/b.py", "sub/deep/c.py"]),
        ([".env", "**/.hidden/*.py"], [], [".env", "sub/.hidden/h.py"]),
        ([".git/hooks/*.py", "__pycache__/**"], [], [".git/hooks/g.py", "__pycache__/p.py"]),
    ],
)
def test_globs_choose_files(
    folder: Path, include: list[str], exclude: list[str], expected: list[str]
) -> None:
    for name in (
        *("a.py", "run.sh", "data/x.bin", "sub/b.py", "sub/deep/c.py", ".env", "sub/.hidden/h.py"),
        *(".git/hooks/g.py", "__pycache__/p.py", ".pai/q.py", ".ipynb_checkpoints/r.py"),
    ):
        write(folder, name)
    assert chosen(folder, include, exclude) == expected


def test_an_excluded_folder_is_not_even_looked_into(folder: Path) -> None:
    write(folder, "a.py")
    (folder / "data").mkdir()
    (folder / "data" / "round.py").symlink_to(folder)
    assert chosen(folder, ["**/*.py"], ["data"]) == ["a.py"]


def test_what_is_installed_is_nobodys_code_unless_its_folder_is_named(folder: Path) -> None:
    installed = "venv/lib/six.py", "conda/lib/x.py", "web/node_modules/n.py", "lib/site-packages/s.py"
    for name in ("a.py", *installed, "venv/pyvenv.cfg", "conda/conda-meta/history"):
        write(folder, name)
    assert chosen(folder, ["**/*.py"]) == ["a.py"]
    assert chosen(folder, ["venv/**/*.py", "web/node_modules/**"]) == [
        "venv/lib/six.py",
        "web/node_modules/n.py",
    ]


def test_from_the_home_folder_only_scripts_that_are_in_it_go_along_by_default(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.py", "project/b.py", "project/run.sh"):
        write(folder, name)
    monkeypatch.setenv("HOME", str(folder))
    assert [file.name for file in plan(folder, read_settings(folder)).files] == ["a.py"]
    project = folder / "project"
    assert [file.name for file in plan(project, read_settings(project)).files] == ["b.py", "run.sh"]
    write(folder, ".pai/settings.json", DOCUMENTED)
    assert len(plan(folder, read_settings(folder)).files) == 3


def test_where_nothing_is_chosen_that_is_an_error(folder: Path) -> None:
    write(folder, "a.txt")
    with pytest.raises(CodeError, match=r"No file in .* is chosen by \*\*/\*\.py, \*\*/\*\.sh"):
        plan(folder, CodeSettings())


def test_more_than_200_mb_is_refused_with_the_largest_files(folder: Path) -> None:
    for name, length in (("a.py", 150_000_000), ("b.py", 49_999_999), ("c.py", 1)):
        os.truncate(write(folder, name), length)
    assert plan(folder, CodeSettings()).length == 200_000_000
    write(folder, "d.py", "x")
    with pytest.raises(CodeError) as wrong:
        plan(folder, CodeSettings())
    assert "201 MB in 4 files, of 200 MB at most" in str(wrong.value)
    assert "The largest: a.py (150 MB), b.py (50 MB)" in str(wrong.value)
