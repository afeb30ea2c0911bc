"""What is said before Start, made of what the scheduler foresees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pai_scheduler.i18n import msg
from pai_scheduler.rest.cluster import AvailableAmounts
from pai_scheduler.rest.models import JobLimits, Validation
from pai_spawner.options import FieldChoice, HubLimits, Offer, OptionProblem
from pai_spawner.start_preview import StartPreview, answer_to, refusal_of, unreachable, wrong_options
from tests.spawner.test_words import AVAILABLE, amount

POLICY = HubLimits({"a": "b"}, default_cpus=4, default_memory_mb=16_384)
EVERYTHING = Offer((POLICY.profile,))
CHOSEN = replace(POLICY.defaults, gpus=1, gpu_type="P100")
LIMITS: JobLimits = {
    "priority": 50,
    "queuePlace": 3,
    "maxRunSeconds": None,
    "gpusPerUser": None,
    "gpusHeld": 0,
}
NOW: Validation = {
    "errors": [],
    "fits": "now",
    "reason": "",
    "borrows": False,
    "limits": LIMITS,
    "startsWithin": 0,
    "warnings": [],
    "startsNowIn": [],
}
LATER: Validation = {**NOW, "fits": "later", "reason": "none is free.", "startsWithin": None}
NEVER: Validation = {**NOW, "fits": "never", "reason": "Never fits at present.", "startsWithin": None}
LARGE: AvailableAmounts = {**AVAILABLE, "mostOnOne": amount(64, 400_000, P100=8)}


def answer(
    verdict: Validation, available: dict[str, AvailableAmounts] | None = None, **chosen: Any
) -> StartPreview:
    options = replace(CHOSEN, **chosen)
    return answer_to(options, verdict, available or {"default": AVAILABLE}, EVERYTHING)


def test_what_fits_starts_now() -> None:
    found = answer(NOW).to_json("en")
    assert (found["fits"], found["sentence"], found["title"]) == (
        "now",
        "Starts now.",
        "1 × P100, 4 CPUs, 16 GB",
    )
    assert (found["reason"], found["queuePlace"], found["startsWithin"]) == ("", None, 0)


def test_what_would_wait_says_at_which_place_why_and_how_long_where_that_is_known() -> None:
    found = answer(LATER)
    assert (found.fits, str(found.sentence)) == ("later", "It would wait: place 3 in the queue of default.")
    assert (found.reason, found.queue_position, found.starts_within) == ("none is free.", 3, None)
    timed = answer({**LATER, "startsWithin": 1180})
    assert str(timed.sentence) == "It would wait: place 3 in the queue of default, about 20 minutes."
    assert timed.sentence.in_locale("zh_CN") == "需要排队：在 default 的队列中排第 3 位，约 20 分钟。"


def test_what_never_fits_says_what_to_choose_instead() -> None:
    found = answer(NEVER, gpus=3, cpus=17, memory_mb=50_000)
    assert (found.fits, str(found.sentence)) == ("never", "It would never start as it is.")
    assert (found.reason, str(found.advice)) == (
        "Never fits at present.",
        "Choose at most 2 × P100, 16 CPUs, 39.1 GB.",
    )
    other = "Choose another type of GPU, another virtual cluster, or no GPU."
    assert str(answer(NEVER, gpus=1, gpu_type="K80").advice) == other
    assert answer(NEVER).advice is None  # it is something else


def test_where_it_would_start_now_one_may_go() -> None:
    found = answer({**LATER, "startsNowIn": ["vision"]}).to_json("en")
    assert found["elsewhere"] == [
        {"virtual_cluster": "vision", "now": True, "text": "Take vision: it would start there now"}
    ]


def test_what_never_fits_here_may_fit_elsewhere() -> None:
    available = {"default": AVAILABLE, "small": AVAILABLE, "large": LARGE}
    found = answer(NEVER, available, gpus=4)
    assert [str(one.message) for one in found.elsewhere] == ["Take large: it fits there"]
    assert answer(LATER, available, gpus=2).elsewhere == []


def test_a_profile_that_fixes_the_virtual_cluster_sends_nobody_elsewhere() -> None:
    fixed = {**POLICY.choices, "virtual_cluster": FieldChoice(("default",))}
    offer = Offer((replace(POLICY.profile, choices=fixed),))
    verdict: Validation = {**LATER, "startsNowIn": ["vision"]}
    assert answer_to(CHOSEN, verdict, {"default": AVAILABLE}, offer).elsewhere == []


def test_what_ends_it_is_said() -> None:
    limited: Validation = {**NOW, "limits": {**LIMITS, "maxRunSeconds": 4 * 3600}}
    assert str(answer(limited).ends) == "It is ended 4 hours after its start, whatever runs in it."
    assert answer(NOW).ends is None


def test_what_is_free_is_that_of_the_chosen_virtual_cluster() -> None:
    free = answer(NOW, {"default": AVAILABLE, "large": LARGE}).to_json("en")["free"]
    assert free["gpu_types"] == {"K80": "K80: none in this virtual cluster", "P100": "P100: 1 of 2 free"}
    assert free["virtual_clusters"] == {
        "default": "default: 1/2 × P100 free",
        "large": "large: 1/2 × P100 free",
    }
    assert free["cpus"] == "10 of 19 free"


@pytest.mark.parametrize(
    ("verdict", "refused"),
    [
        (NOW, None),
        (LATER, None),
        (NEVER, "Never fits at present."),
        (
            {**NEVER, "errors": [{"path": "$.a", "message": "No."}, {"path": "$", "message": "Nor."}]},
            "No. Nor.",
        ),
    ],
)
def test_what_refuses_a_start_is_what_was_said_before(verdict: Validation, refused: str | None) -> None:
    assert refusal_of(verdict) == refused
    found = answer(verdict)
    assert (found.fits == "never") == (refused is not None)
    assert refused is None or found.reason == refused


def test_wrong_options_are_named_one_by_one() -> None:
    found = wrong_options([OptionProblem("cpus", msg("{label} must not be empty.", label="x"))]).to_json("en")
    assert (found["fits"], found["sentence"]) == ("wrong", "This cannot be started as it is.")
    assert [problem["option"] for problem in found["problems"]] == ["cpus"]


def test_while_the_scheduler_is_away_nothing_is_promised() -> None:
    found = unreachable(CHOSEN).to_json("zh_CN")
    assert (found["fits"], found["title"]) == ("unknown", "1 × P100、4 个 CPU、16 GB")
    assert "调度器暂时没有响应" in found["sentence"]
