"""The scheduler's settings file: the same options, and a sentence with the line where one is wrong."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest
import yaml

import hub_config
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.server.main import main
from pai_scheduler.server.options import FOR_ONE_START, make_parser, parse_options, read_settings, settings_of

SHIPPED = Path(hub_config.__file__).with_name("scheduler.yaml")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return where a settings file is to be."""
    return tmp_path / "scheduler.yaml"


def parse(file: Path, *arguments: str) -> argparse.Namespace:
    return parse_options(make_parser(), ["--config", str(file), *arguments])


def refusal(file: Path, text: str) -> str:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(StartError) as caught:
        parse(file)
    start = f"The settings file {file} cannot be used: "
    sentence = str(caught.value)
    assert sentence.startswith(start)
    return sentence.removeprefix(start)


def test_a_file_says_what_the_command_line_would(file: Path) -> None:
    file.write_text(
        "engine: swarm\nport: 9000\nnode-patience: 30\nencrypt-networks: true\nadmin-service: [a, b]\n"
        "data-dir: /srv/pai\nstorage: http://one:9870;http://two:9870\n"
    )
    said = ["--engine", "swarm", "--port", "9000", "--node-patience", "30", "--encrypt-networks"]
    said += ["--admin-service", "a", "--admin-service", "b", "--data-dir", "/srv/pai"]
    said += ["--storage", "http://one:9870;http://two:9870"]
    from_file, from_line = vars(parse(file)), vars(make_parser().parse_args(said))
    assert from_file.pop("config") == file
    assert from_line.pop("config") is None
    assert from_file == from_line


def test_the_command_line_wins_and_what_may_be_given_several_times_adds_up(file: Path) -> None:
    file.write_text("engine: swarm\nport: 9000\nadmin-service: [a]\n")
    options = parse(file, "--engine", "docker", "--admin-service", "b")
    assert (options.engine, options.port, options.admin_service) == ("docker", 9000, ["a", "b"])


@pytest.mark.parametrize("command", [["doctor"], ["backup", "file"], ["node", "add"]])
def test_the_file_holds_for_what_is_done_instead_of_running(file: Path, command: list[str]) -> None:
    file.write_text("data-dir: /srv/pai\ndatabase: postgresql://pai@db/pai\n")
    options = parse(file, *command)
    assert (options.data_dir, options.database) == (Path("/srv/pai"), "postgresql://pai@db/pai")


def test_a_relative_path_begins_at_the_files_folder(
    file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    file.write_text("cluster: cluster.yaml\nstorage: files\nhomes: /srv/homes\n")
    options = parse(Path("../scheduler.yaml"))
    assert options.cluster.resolve() == tmp_path / "cluster.yaml"
    assert Path(options.storage).resolve() == tmp_path / "files"
    assert options.homes == Path("/srv/homes")


@pytest.mark.parametrize("where", ["http://n:9870", "file:///srv/pai", ""])
def test_a_storage_that_is_no_path_stays_as_it_is(file: Path, where: str) -> None:
    file.write_text(yaml.safe_dump({"storage": where}))
    assert parse(file).storage == where


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_a_file_without_settings_changes_nothing(file: Path, text: str) -> None:
    file.write_text(text)
    assert {**vars(parse(file)), "config": None} == vars(make_parser().parse_args([]))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("engine: docker\nprot: 1", "line 2: there is no setting prot. Is port meant?"),
        ("ssh_port: 1", "line 1: there is no setting ssh_port. Is ssh-port meant?"),
        ("help: true", "line 1: there is no setting help. There are: admin-service, agent-image, "),
        ("engine: podman", "line 1: engine must be one of process, docker, swarm, not podman"),
        ("\nport: many", "line 2: port must be a whole number, not 'many'"),
        ("port: true", "line 1: port must be a whole number, not True"),
        ("port: 1.5", "line 1: port must be a whole number, not 1.5"),
        ("node-patience: soon", "line 1: node-patience must be a number, not 'soon'"),
        ("encrypt-networks: 1", "line 1: encrypt-networks must be true or false, not 1"),
        ("cluster:", "line 1: cluster must be text (numbers and the like between quotes), not None"),
        (
            "storage-user: 007",
            "line 1: storage-user must be text (numbers and the like between quotes), not 7",
        ),
        ("admin-service: pai", "line 1: admin-service must be a list of texts, not 'pai'"),
        ("admin-service: [1]", "line 1: admin-service must be a list of texts, not 1"),
        ("port: 1\nport: 2", "line 2: port stands in line 1, too"),
        ("- port", "it must hold settings, one a line: NAME: VALUE"),
        ("port", "it must hold settings, one a line: NAME: VALUE"),
        ("1: 2", "line 1: the name of a setting must be text"),
        ("[a]: 2", "line 1: the name of a setting must be text"),
        ("port: [", "line 1, column 8: "),
        ("host: 2026-13-01", "month must be in 1..12"),
        ("host: !!python/name:os.system", "line 1, column 7: could not determine a constructor"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(file: Path, text: str, sentence: str) -> None:
    assert refusal(file, text).startswith(sentence)


@pytest.mark.parametrize("name", FOR_ONE_START)
def test_what_is_for_one_start_does_not_stand_in_a_file(file: Path, name: str) -> None:
    sentence = f"line 1: {name} is for one start only: give --{name} in the command line instead"
    assert refusal(file, f"{name}: true") == sentence


def test_bytes_that_are_no_text_are_refused(file: Path) -> None:
    file.write_bytes(b"host: \xff")
    with pytest.raises(StartError, match="it is not UTF-8 text"):
        parse(file)


def test_a_file_that_is_wrong_or_missing_ends_the_start_with_one_sentence(
    file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["--config", str(file)]) == 2
    file.write_text("database: postgresql://pai:secret@db/pai")
    tokens = tmp_path / "tokens.json"
    tokens.write_text("{}")
    tokens.chmod(0o600)
    assert main(["--config", str(file), "--tokens", str(tokens), "--data-dir", str(tmp_path / "data")]) == 2
    missing, password = capsys.readouterr().err.splitlines()
    assert missing == f"pai-scheduler: The settings file {file} cannot be used: No such file or directory"
    assert "in the settings file, where others can read it" in password
    assert "secret" not in password


def test_the_file_that_is_shipped_sets_nothing_and_each_of_its_comments_is_a_setting(file: Path) -> None:
    parser = make_parser()
    assert read_settings(SHIPPED, parser) == {}
    settings = re.findall(r"^#([a-z][a-z-]*:.*)$", SHIPPED.read_text(encoding="utf-8"), re.MULTILINE)
    file.write_text("\n".join(settings))
    expected = {action.dest for action in settings_of(parser).values()}
    assert set(read_settings(file, parser)) == expected
    assert {"engine", "data_dir", "log_level"} <= expected
