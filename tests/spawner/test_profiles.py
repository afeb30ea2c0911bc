"""Profiles as an administrator writes them."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from pai_spawner.options import FIELDS, FieldChoice, HubLimits, InvalidOptions, Offer, parse_options
from pai_spawner.profiles import InvalidProfiles, offer_to, read_profiles
from tests.hub import REPOSITORY

POLICY = HubLimits(
    {"Notebook": "pai/notebook:1", "Torch": "pai/torch:2"}, default_memory_mb=4096, most_cpus=8
)
SMALL = {"display_name": "Small", "defaults": {"cpus": 2}}
TRAINING = {
    "display_name": "Training on GPUs",
    "description": "For what takes hours.",
    "groups": ["vision", "speech"],
    "defaults": {"memory_mb": 16_384},
    "choices": {
        "image": ["Torch", "other/image:1"],
        "gpu_type": ["P100", ""],
        "gpus": [1, 2, 4],
        "cpus": {"min": 4},
        "memory_mb": {"max": 65_536},
        "virtual_cluster": True,
        "run_minutes": {"min": 30, "max": 600},
    },
    "allowed_images": ["lab/.*"],
}


def wrong(*profiles: object, policy: HubLimits = POLICY) -> list[str]:
    with pytest.raises(InvalidProfiles) as caught:
        read_profiles(list(profiles), policy)  # type: ignore[arg-type]
    return str(caught.value).splitlines()


def test_a_profile_is_what_it_says_within_what_the_hub_allows() -> None:
    small, training = read_profiles([SMALL, TRAINING], POLICY)
    assert (small.slug, str(small.name), small.groups) == ("small", "Small", frozenset())
    assert (small.defaults.cpus, small.defaults.memory_mb) == (2, 4096)
    assert all(choice.is_fixed for choice in small.choices.values())
    assert (training.slug, training.groups) == ("training-on-gpus", {"vision", "speech"})
    defaults = training.defaults
    assert (defaults.profile, defaults.image, defaults.gpu_type) == (
        "training-on-gpus",
        "pai/torch:2",
        "P100",
    )
    # what the Hub begins with, or what is nearest to that
    assert (defaults.gpus, defaults.cpus, defaults.memory_mb, defaults.run_minutes) == (1, 4, 16_384, 30)
    images = ("pai/torch:2", "other/image:1")
    assert training.choices["image"] == FieldChoice(images, patterns=("lab/.*",))
    assert training.choices["cpus"] == FieldChoice(None, 4, 8)
    assert training.choices["memory_mb"] == FieldChoice(None, 256, 65_536)
    assert training.choices["virtual_cluster"] == FieldChoice()
    assert training.choices["shm_mb"].is_fixed


def test_a_profile_is_open_to_its_groups() -> None:
    profiles = read_profiles([SMALL, TRAINING], POLICY)

    def open_to(*groups: str) -> list[str]:
        return [profile.slug for profile in offer_to(profiles, groups, POLICY).profiles]

    assert open_to("vision", "others") == ["small", "training-on-gpus"]
    assert open_to("others") == open_to() == ["small"]


def test_without_profiles_whatever_the_hub_allows_may_be_chosen() -> None:
    offer = offer_to((), ["any"], POLICY)
    assert parse_options({"cpus": 8, "gpus": 3}, offer).cpus == 8
    assert offer.image_names == {"pai/notebook:1": "Notebook", "pai/torch:2": "Torch"}


def test_no_profile_goes_beyond_the_hubs_own_limits() -> None:
    generous = {"display_name": "G", "choices": {"cpus": {"max": 100}, "memory_mb": [512, 1024]}}
    (profile,) = read_profiles([generous], POLICY)
    assert profile.choices["cpus"].most == 8
    with pytest.raises(InvalidOptions, match="at most 8 here"):
        parse_options({"cpus": 9}, Offer((profile,)))


def test_a_time_limit_that_has_a_most_cannot_be_left_out() -> None:
    (profile,) = read_profiles([{"display_name": "G", "choices": {"run_minutes": {"max": 480}}}], POLICY)
    assert profile.defaults.run_minutes == 480
    with pytest.raises(InvalidOptions, match="must be at least 1, not 0"):
        parse_options({"run_minutes": 0}, Offer((profile,)))


def test_a_name_without_latin_letters_gets_a_slug_of_its_own() -> None:
    first, second = read_profiles([{"display_name": "小型"}, {"display_name": "大型"}], POLICY)
    assert first.slug != second.slug
    assert first.slug.isascii()


def test_texts_are_read_in_the_language_of_the_reader_and_else_in_english() -> None:
    texts = {"en": "Small", "zh-CN": "小型"}
    both, plain, chinese = read_profiles(
        [
            {"display_name": texts, "description": {"zh-CN": "{x} 的", "en": "Of {x}."}},
            {"display_name": "Plain"},
            {"display_name": {"zh-CN": "大型"}},
        ],
        POLICY,
    )
    assert [text.in_locale("zh_CN") for text in (both.name, both.description)] == ["小型", "{x} 的"]
    assert [text.in_locale("en") for text in (both.name, both.description)] == ["Small", "Of {x}."]
    assert both.slug == "small"
    assert [plain.name.in_locale(one) for one in ("zh_CN", "en")] == ["Plain", "Plain"]
    assert [chinese.name.in_locale(one) for one in ("zh_CN", "en")] == ["大型", "大型"]
    lines = wrong({"display_name": {"zh": "小型"}}, {"display_name": {}}, {"display_name": {"en": ""}})
    assert len(lines) == 3
    assert any("there is no “zh” here" in line and "Known are en, zh-CN." in line for line in lines)


def test_everything_wrong_is_said_at_once_with_its_place_and_what_should_stand_there() -> None:
    bad = {
        "display_name": "",
        "colour": "red",
        "groups": [],
        "defaults": {"cpus": 0, "memory": 1},
        "choices": {"cpus": "many", "gpus": [], "run_minutes": {"from": 1}},
    }
    lines = wrong(SMALL, bad)
    place = "c.PAISpawner.profiles[1]"
    name = 'it must be the name that people see, or one by language: {"en": …, "zh-CN": …}.'
    assert f"{place}.display_name: '' is wrong; {name}" in lines
    assert f"{place}.defaults.cpus: 0 is wrong; it must be a number of CPUs, from 1." in lines
    (unknown,) = (line for line in lines if "colour" in line)
    assert unknown.startswith(f"{place}: there is no “colour” here. Known are display_name,")
    (near,) = (line for line in lines if "“memory”" in line)
    assert "did you mean “memory_mb”?" in near
    numbers = 'must be True (whatever the Hub allows), a list of whole numbers, or {"min": …, "max": …}.'
    assert sum(numbers in line for line in lines) == 3
    assert len(lines) == 8


def test_the_administrators_page_names_every_part_of_a_profile() -> None:
    page = (REPOSITORY / "docs/administrators/hub.md").read_text(encoding="utf-8")
    described = page[page.index("### Profiles") : page.index("### The same by REST API")]
    names = set(re.findall(r"`(\w+)`", described))
    schema = json.loads((REPOSITORY / "pai_spawner/profiles.schema.json").read_text())
    profile = schema["$defs"]["profile"]["properties"]
    parts = {*profile, *profile["defaults"]["properties"], *profile["choices"]["properties"]}
    assert parts <= names
    assert {field.name for field in FIELDS} == set(profile["choices"]["properties"])


def test_the_example_can_be_used_in_both_languages() -> None:
    example = yaml.safe_load((REPOSITORY / "hub_config/examples/profiles.yaml").read_text())
    assert [profile.slug for profile in read_profiles(example, HubLimits({"a": "b"}))] == [
        "write-and-explore",
        "train-on-a-gpu",
        "as-i-say",
        "large-machines",
        "look-at-my-files",
    ]
    for profile in read_profiles(example, HubLimits({"a": "b"})):
        for text in (profile.name, profile.description):
            assert text.in_locale("en").isascii()
            assert not text.in_locale("zh_CN").isascii()


@pytest.mark.parametrize("profiles", [{"display_name": "a"}, "a", 7])
def test_what_is_no_list_is_refused(profiles: Any) -> None:
    with pytest.raises(InvalidProfiles, match="must be a list of profiles"):
        read_profiles(profiles, POLICY)


def test_a_profile_without_a_name_is_refused() -> None:
    assert wrong({"slug": "a"}) == ["c.PAISpawner.profiles[0]: “display_name” is missing."]


def test_two_profiles_have_two_slugs() -> None:
    (line,) = wrong({"display_name": "A b"}, {"display_name": "a-B"})
    assert "two with the slug “a-b”" in line


def test_what_a_profile_begins_with_may_be_chosen_in_it() -> None:
    (line,) = wrong({"display_name": "A", "defaults": {"gpus": 3}, "choices": {"gpus": [1, 2]}})
    assert line.startswith("c.PAISpawner.profiles[0].defaults: what it begins with may not be chosen in it.")
    assert "The number of GPUs may be 1, 2, not “3”." in line


def test_a_broken_regular_expression_is_named() -> None:
    (line,) = wrong({"display_name": "A", "allowed_images": ["ok", "("]})
    assert line.startswith("c.PAISpawner.profiles[0].allowed_images[1]: “(” is no regular expression")


def test_a_profile_may_name_the_shared_folders_of_its_servers() -> None:
    named, none, usual = read_profiles(
        [
            {"display_name": "A", "shared_folders": ["sets"]},
            {"display_name": "B", "shared_folders": []},
            {"display_name": "C"},
        ],
        HubLimits({"any": "any"}),
    )
    assert (named.shared_folders, none.shared_folders, usual.shared_folders) == (("sets",), (), None)
    with pytest.raises(InvalidProfiles, match="shared_folders"):
        read_profiles([{"display_name": "A", "shared_folders": "sets"}], HubLimits({"any": "any"}))
