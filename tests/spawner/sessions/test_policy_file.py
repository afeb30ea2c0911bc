"""The file with the policy: what it takes, and how it says what is wrong."""

from __future__ import annotations

import logging
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import hub_config
from pai_spawner.sessions.policy import SETTING_NAMES
from pai_spawner.sessions.policy_file import (
    _AS_IT_IS,
    _DURATIONS,
    _WITHOUT,
    DEFAULT_EVERY,
    PolicyError,
    PolicySource,
    parse_policy,
    policy_schema,
    read_policy,
)


def test_the_schema_is_one_and_each_of_its_settings_is_read() -> None:
    Draft202012Validator.check_schema(policy_schema())
    names = policy_schema()["$defs"]["rule"]["properties"].keys() - {"when"}
    assert names == {*_DURATIONS, *_WITHOUT, *_AS_IT_IS, "hours"}
    assert {*_DURATIONS.values(), *_WITHOUT.values(), *_AS_IT_IS.values(), "hours"} == SETTING_NAMES


def test_every_setting_of_a_rule_is_taken() -> None:
    document = {
        "every": "1m 30s",
        "rules": [
            {
                "when": {"gpus": True, "days": ["sat"], "hours": ["08:00-20:00"]},
                "idleAfter": "1h 30m",
                "gpuBelow": 10,
                "cpuBelow": 50.5,
                "busyCounts": False,
                "connectionsCount": True,
                "terminalsCount": False,
                "warnBefore": "90s",
                "lifetime": "2d",
                "extendBy": "4h",
                "extendTimes": 2,
                "hours": "20:00-07:00",
                "sessions": 2,
                "gpus": 4,
            }
        ],
        "groups": {"vision": {"gpus": 8}},
    }
    read = parse_policy(document)
    sets = dict(read.policy.rules[0].sets)
    assert [str(part) for part in sets.pop("hours")] == ["20:00-07:00"]
    assert sets == {
        "idle_after": timedelta(minutes=90),
        "gpu_below": 10,
        "cpu_below": 50.5,
        "busy_counts": False,
        "connections_count": True,
        "terminals_count": False,
        "warn_before": timedelta(seconds=90),
        "lifetime": timedelta(days=2),
        "extend_by": timedelta(hours=4),
        "extend_times": 2,
        "sessions": 2,
        "gpus": 4,
    }
    assert read.every == timedelta(seconds=90)
    assert (read.policy.groups["vision"].gpus, read.policy.groups["vision"].sessions) == (8, None)


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ({"rules": [{"idelAfter": "1h"}]}, "rules[0]: idelAfter is not known here. Did you mean idleAfter?"),
        ({"colour": 1}, ".: colour is not known here. Known are: timeZone, every, rules, groups."),
        ({"rules": [{"idleAfter": 90}]}, "rules[0].idleAfter: 90 does not fit. What may stand here: "),
        ({"rules": [{"idleAfter": "soon"}]}, 'rules[0].idleAfter: "soon" does not fit.'),
        ({"rules": [{"hours": "8-20"}]}, 'rules[0].hours: "8-20" does not fit.'),
        ({"rules": [{"sessions": -1}]}, "rules[0].sessions: -1 does not fit."),
        ({"rules": [{"when": {"days": ["today"]}}]}, 'rules[0].when.days[0]: "today" does not fit.'),
        ({"timeZone": "Mars/Base"}, "timeZone: there is no time zone Mars/Base"),
        ({"timeZone": "../etc"}, "timeZone: there is no time zone ../etc"),
        ([], ".: [] does not fit."),
        ({"rules": None}, "rules: null does not fit."),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_place(document: Any, sentence: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy(document)
    assert str(caught.value).startswith(sentence)


def test_a_file_is_read_and_an_error_names_it(tmp_path: Path) -> None:
    file = tmp_path / "sessions.yaml"
    with pytest.raises(PolicyError, match=r"sessions\.yaml cannot be read: No such file"):
        read_policy(file)
    file.write_text("rules: [")
    with pytest.raises(PolicyError, match=r"sessions\.yaml is not YAML"):
        read_policy(file)
    file.write_text("rules: [{gpu: 3}]")
    with pytest.raises(PolicyError, match=r"sessions\.yaml is wrong: rules\[0\]: gpu is not known here"):
        read_policy(file)
    file.write_text("# nothing yet\n")
    assert read_policy(file).every == DEFAULT_EVERY


def test_the_file_that_comes_with_the_project_can_be_used() -> None:
    file = Path(hub_config.__file__).with_name("sessions.yaml")
    assert read_policy(file).policy.rules


# The policy's file, read again when it has changed.


def write(file: Path, text: str, time: int) -> None:
    file.write_text(text)
    os.utime(file, ns=(time, time))


def test_a_changed_file_is_read_again_and_a_wrong_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "sessions.yaml"
    write(file, "rules: [{sessions: 1}]", 1)
    source = PolicySource(file)
    assert source.refresh().policy.rules[0].sets == {"sessions": 1}
    write(file, "rules: [{sessions: 2}]", 2)
    assert source.refresh().policy.rules[0].sets == {"sessions": 2}
    write(file, "rules: [{session: 3}]", 3)
    with caplog.at_level(logging.ERROR):
        assert source.refresh().policy.rules[0].sets == {"sessions": 2}
    assert "Did you mean sessions?" in caplog.text
    file.unlink()
    assert source.refresh().policy.rules[0].sets == {"sessions": 2}


def test_a_file_that_is_wrong_at_first_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be read"):
        PolicySource(tmp_path / "none.yaml")
