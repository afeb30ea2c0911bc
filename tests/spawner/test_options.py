"""Options of a server: from the form, from REST, from the database."""

from __future__ import annotations

from typing import Any

import pytest

from pai_spawner.options import InvalidOptions, Options, Policy, options_from_form, parse_options

POLICY = Policy(
    images={"Notebook": "pai/notebook:1", "With PyTorch": "pai/torch:2"},
    any_image=False,
    default_cpus=2,
    default_memory_mb=4096,
    most_cpus=8,
    most_memory_mb=16384,
    most_gpus=4,
)
ANY_IMAGE = Policy(POLICY.images, True, 2, 4096)


def problems_of(raw: dict[str, Any], policy: Policy = POLICY) -> list[str]:
    with pytest.raises(InvalidOptions) as caught:
        parse_options(raw, policy)
    return [str(problem) for problem in caught.value.problems]


def test_who_chooses_nothing_gets_the_defaults() -> None:
    assert parse_options({}, POLICY) == Options("pai/notebook:1", 2, 4096, 0, "", "default")


def test_a_filled_form_becomes_options() -> None:
    form = {
        "_xsrf": ["2|abc"],
        "image": ["pai/torch:2"],
        "gpu_type": ["P100"],
        "gpus": [" 2 "],
        "cpus": ["4"],
        "memory_mb": ["8192"],
        "virtual_cluster": ["vision"],
    }
    assert parse_options(options_from_form(form), POLICY) == Options(
        "pai/torch:2", 4, 8192, 2, "P100", "vision"
    )


def test_an_empty_field_of_the_form_means_its_default() -> None:
    assert parse_options(options_from_form({"cpus": [""], "gpu_type": [""]}), POLICY) == POLICY.defaults


def test_a_typed_image_wins_over_the_chosen_one() -> None:
    raw = options_from_form({"image": ["pai/notebook:1"], "other_image": [" my/own:3 "]})
    assert parse_options(raw, ANY_IMAGE).image == "my/own:3"


def test_options_survive_the_hubs_database() -> None:
    options = parse_options({"gpus": 1, "gpu_type": "TITANX"}, POLICY)
    assert parse_options(options.to_json(), POLICY) == options


def test_an_image_that_is_not_offered_is_refused_with_those_that_are() -> None:
    assert problems_of({"image": "evil:1"}) == [
        "The image “evil:1” is not one of those this Hub offers: pai/notebook:1, pai/torch:2."
    ]


def test_everything_wrong_is_said_at_once() -> None:
    assert problems_of({"cpus": 9, "memory_mb": "12 GB", "gpus": -1, "colour": "red"}) == [
        "There is no option “colour”; "
        "the options are image, cpus, memory_mb, gpus, gpu_type, virtual_cluster.",
        "The number of CPUs may be at most 8 on this Hub, not 9.",
        "The memory (MB) must be a whole number, not “12 GB”.",
        "The number of GPUs must be at least 0, not -1.",
    ]


@pytest.mark.parametrize("value", [True, None, 1.5, [2], {"a": 1}, "٣", "1e9", "9" * 40, "-1"])
def test_what_is_no_count_is_refused(value: Any) -> None:
    assert problems_of({"cpus": value})


@pytest.mark.parametrize("value", [None, 7, ["default"], "line\nbreak", "x" * 256])
def test_what_is_no_short_text_is_refused(value: Any) -> None:
    assert problems_of({"virtual_cluster": value}) == ["The virtual cluster must be a short text."]


def test_a_hub_without_images_asks_for_one() -> None:
    assert problems_of({}, Policy({}, True, 1, 1024)) == ["Choose an image."]


def test_problems_are_told_in_chinese() -> None:
    with pytest.raises(InvalidOptions) as caught:
        parse_options({"cpus": 0}, POLICY)
    assert caught.value.in_locale("zh_CN") == "CPU 数至少为 1，不能是 0。"
