"""The schema that programs read says exactly what is accepted."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pai_spawner.options import HubLimits, InvalidOptions, Offer, options_schema, parse_options
from pai_spawner.profiles import offer_to, read_profiles

POLICY = HubLimits({"Notebook": "nb:1", "Torch": "torch:2"}, ("lab/[a-z]+",), most_cpus=8, most_gpus=4)
PROFILES = read_profiles(
    [
        {"display_name": "Small"},
        {
            "display_name": "GPU",
            "default": True,
            "choices": {"gpus": [0, 1, 2], "gpu_type": True, "cpus": {"max": 4}, "virtual_cluster": ["a"]},
            "allowed_images": ["lab/.*"],
        },
        {"display_name": "Type", "choices": {"gpus": [0, 1], "gpu_type": ["P100", "K80"], "image": True}},
    ],
    POLICY,
)
OFFERS = (offer_to((), (), POLICY), offer_to(PROFILES, (), POLICY), Offer((HubLimits({}, (".*",)).profile,)))

NUMBERS = st.one_of(st.integers(-2, 10), st.sampled_from([512, 1024, 2048, 0.5, None, True]))
TEXTS = st.one_of(
    st.sampled_from(["", "nb:1", "torch:2", "lab/x", "lab/x1", "P100", "a", "default"]), NUMBERS
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "profile": st.sampled_from(["", "small", "gpu", "type", "none"]),
        "image": TEXTS,
        "gpu_type": TEXTS,
        "gpus": NUMBERS,
        "cpus": NUMBERS,
        "memory_mb": NUMBERS,
        "shm_mb": NUMBERS,
        "virtual_cluster": TEXTS,
        "run_minutes": NUMBERS,
        "gpu": NUMBERS,
    },
)


def test_the_schema_is_one() -> None:
    for offer in OFFERS:
        Draft202012Validator.check_schema(options_schema(offer))


@given(OPTIONS, st.sampled_from(OFFERS))
def test_what_the_schema_accepts_is_accepted_and_nothing_else(raw: dict[str, Any], offer: Offer) -> None:
    try:
        parse_options(raw, offer)
        accepted = True
    except InvalidOptions:
        accepted = False
    assert Draft202012Validator(options_schema(offer)).is_valid(raw) == accepted


def test_it_says_what_each_profile_is_for_and_begins_with() -> None:
    small, gpu, _ = options_schema(OFFERS[1])["anyOf"]
    assert (small["title"], small["required"]) == ("Small", ["profile"])
    assert "required" not in gpu
    assert gpu["properties"]["cpus"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 4,
        "description": "The number of CPUs",
        "default": 1,
    }
