"""Options of a server: from the form, from REST, from the database."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pai_spawner.messages import Translated
from pai_spawner.options import (
    FieldChoice,
    HubLimits,
    InvalidOptions,
    Offer,
    Options,
    Profile,
    options_from_form,
    parse_options,
)

POLICY = HubLimits(
    images={"Notebook": "pai/notebook:1", "With PyTorch": "pai/torch:2"},
    default_cpus=2,
    default_memory_mb=4096,
    most_cpus=8,
    most_memory_mb=16384,
    most_gpus=4,
)
EVERYTHING = Offer((POLICY.profile,))
DEFAULTS = POLICY.defaults
KNOWN = "profile, image, gpu_type, gpus, cpus, memory_mb, shm_mb, virtual_cluster, run_minutes"


def offer(*profiles: Profile) -> Offer:
    return Offer(profiles)


def profile(slug: str, *, is_default: bool = False, **choices: FieldChoice) -> Profile:
    fixed = {name: FieldChoice((getattr(DEFAULTS, name),)) for name in POLICY.choices}
    defaults = replace(DEFAULTS, profile=slug)
    return Profile(
        slug, Translated(slug.title()), Translated(""), defaults, {**fixed, **choices}, is_default=is_default
    )


def problems_of(raw: dict[str, Any], offered: Offer = EVERYTHING) -> list[str]:
    with pytest.raises(InvalidOptions) as caught:
        parse_options(raw, offered)
    return [str(problem) for problem in caught.value.problems]


def test_who_chooses_nothing_gets_the_defaults() -> None:
    expected = Options("", "pai/notebook:1", "", 0, 2, 4096, 512, "default", 0)
    assert parse_options({}, EVERYTHING) == expected


def test_a_filled_form_becomes_options() -> None:
    form = {
        "_xsrf": ["2|abc"],
        "image": ["pai/torch:2"],
        "gpu_type": ["P100"],
        "gpus": [" 2 "],
        "cpus": ["4"],
        "memory_mb": ["8192"],
        "shm_mb": ["1024"],
        "virtual_cluster": ["vision"],
        "run_minutes": ["480"],
    }
    assert parse_options(options_from_form(form), EVERYTHING) == Options(
        "", "pai/torch:2", "P100", 2, 4, 8192, 1024, "vision", 480
    )


def test_an_empty_field_of_the_form_means_its_default() -> None:
    assert parse_options(options_from_form({"cpus": [""], "gpu_type": [""]}), EVERYTHING) == DEFAULTS


def test_of_a_form_with_several_profiles_the_fields_of_the_chosen_one_count() -> None:
    form = {
        "profile": ["gpu"],
        "cpu.cpus": ["8"],
        "gpu.cpus": ["4"],
        "gpu.other_image": ["my/own:3"],
        "gpu.image": ["pai/torch:2"],
        ".cpus": ["1"],
    }
    assert options_from_form(form) == {"profile": "gpu", "cpus": "4", "image": "my/own:3", ".cpus": "1"}


def test_a_typed_image_wins_over_the_chosen_one() -> None:
    raw = options_from_form({"image": ["pai/notebook:1"], "other_image": [" my/own:3 "]})
    anything = Offer((replace(POLICY, allowed_images=(".*",)).profile,))
    assert parse_options(raw, anything).image == "my/own:3"


def test_an_image_may_be_typed_whose_whole_name_has_an_allowed_form() -> None:
    own = Offer((replace(POLICY, allowed_images=(r"lab/[a-z]+", r"pai/.*")).profile,))
    for image in ("lab/torch", "pai/notebook:9", "pai/torch:2"):
        assert parse_options({"image": image}, own).image == image
    assert problems_of({"image": "lab/torch:1"}, own) == [
        "The image “lab/torch:1” is not one of those that are offered (pai/notebook:1, pai/torch:2), and its "
        "name has none of the allowed forms: lab/[a-z]+, pai/.*."
    ]


def test_options_survive_the_hubs_database() -> None:
    options = parse_options({"gpus": 1, "gpu_type": "TITANX", "run_minutes": 60}, EVERYTHING)
    assert parse_options(options.to_json(), EVERYTHING) == options


def test_options_that_an_older_version_stored_are_still_good() -> None:
    stored = {"image": "pai/torch:2", "cpus": 4, "memory_mb": 8192, "gpus": 0, "gpu_type": ""}
    assert parse_options(stored, EVERYTHING).image == "pai/torch:2"


def test_an_image_that_is_not_offered_is_refused_with_those_that_are() -> None:
    assert problems_of({"image": "evil:1"}) == [
        "The image “evil:1” is not one of those that are offered: pai/notebook:1, pai/torch:2."
    ]


def test_everything_wrong_is_said_at_once_and_which_option_it_is() -> None:
    with pytest.raises(InvalidOptions) as caught:
        parse_options({"cpus": 9, "memory_mb": "12 GB", "gpus": -1, "colour": "red"}, EVERYTHING)
    assert [(problem.option, str(problem)) for problem in caught.value.problems] == [
        ("colour", f"There is no option “colour”; the options are {KNOWN}."),
        ("gpus", "The number of GPUs must be at least 0, not -1."),
        ("cpus", "The number of CPUs may be at most 8 here, not 9."),
        ("memory_mb", "The memory (MB) must be a whole number, not “12 GB”."),
    ]


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("gpu", "gpus"), ("GPUs", "gpus"), ("memory", "memory_mb"), ("gpuType", "gpu_type"), ("vc", None)],
)
def test_an_unknown_option_is_named_with_the_nearest_that_there_is(name: str, nearest: str | None) -> None:
    hint = f"did you mean “{nearest}”? The" if nearest else "the"
    assert problems_of({name: 1}) == [f"There is no option “{name}”; {hint} options are {KNOWN}."]


@pytest.mark.parametrize("value", [True, None, 1.5, [2], {"a": 1}, "٣", "1e9", "9" * 40, "-1"])
def test_what_is_no_count_is_refused(value: Any) -> None:
    assert problems_of({"cpus": value})


@pytest.mark.parametrize("value", [None, 7, ["default"], "line\nbreak", "x" * 256])
def test_what_is_no_short_text_is_refused(value: Any) -> None:
    assert problems_of({"virtual_cluster": value}) == ["The virtual cluster must be a short text."]


def test_a_type_without_a_number_is_questioned() -> None:
    assert problems_of({"gpu_type": "P100"}) == ["0 × P100: choose how many GPUs, or no type of GPU."]
    assert problems_of({"gpu_type": "P100", "gpus": "0"}) == problems_of({"gpu_type": "P100"})


def test_where_a_type_must_be_chosen_none_is_meant_by_no_number() -> None:
    own = offer(profile("gpu", gpu_type=FieldChoice(("P100", "TITANX")), gpus=FieldChoice((0, 1))))
    assert parse_options({"gpu_type": "P100"}, own).gpu_type == ""
    assert parse_options({"gpu_type": "P100", "gpus": 1}, own).gpu_type == "P100"


def test_a_profile_allows_what_it_says_and_nothing_else() -> None:
    own = offer(
        profile("cpu"),
        profile(
            "gpu",
            gpus=FieldChoice((1, 2)),
            cpus=FieldChoice(None, 2, 6),
            virtual_cluster=FieldChoice(("a", "b")),
        ),
    )
    assert parse_options({}, own).profile == "cpu"
    raw = {"profile": "gpu", "gpus": "2", "cpus": 6, "virtual_cluster": "b"}
    assert parse_options(raw, own).gpus == 2
    assert problems_of({"cpus": 3}, own) == ["The number of CPUs may be 2, not “3”."]
    assert problems_of({**raw, "gpus": 3, "cpus": 7, "virtual_cluster": "c", "shm_mb": 1}, own) == [
        "The number of GPUs may be 1, 2, not “3”.",
        "The number of CPUs may be at most 6 here, not 7.",
        "The shared memory (MB) may be 512, not “1”.",
        "The virtual cluster may be a, b, not “c”.",
    ]


def test_the_profile_that_is_marked_is_the_default() -> None:
    assert parse_options({}, offer(profile("a"), profile("b", is_default=True))).profile == "b"


@pytest.mark.parametrize("slug", ["c", "", None, 7, ["a"]])
def test_a_profile_that_is_not_open_is_refused(slug: Any) -> None:
    (problem,) = problems_of({"profile": slug}, offer(profile("a"), profile("b")))
    assert problem.endswith("is not one of those open to you: a, b.")


def test_a_hub_without_profiles_has_none_to_choose() -> None:
    assert problems_of({"profile": "gpu"}) == ["This Hub has no profiles, so there is no “gpu”."]
    assert parse_options({"profile": ""}, EVERYTHING) == DEFAULTS


def test_to_whom_no_profile_is_open_that_is_said() -> None:
    assert problems_of({}, offer()) == [
        "No profile of this Hub is open to you. Ask an administrator to add you to a group."
    ]


def test_a_hub_without_images_asks_for_one() -> None:
    anything = Offer((HubLimits({}, (".*",)).profile,))
    assert problems_of({}, anything) == ["Choose an image."]
    assert problems_of({"image": ""}, anything) == ["Choose an image."]


def test_problems_are_told_in_chinese() -> None:
    with pytest.raises(InvalidOptions) as caught:
        parse_options({"cpus": 0}, EVERYTHING)
    assert caught.value.in_locale("zh_CN") == "CPU 数至少为 1，不能是 0。"
