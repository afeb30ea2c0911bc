"""The options form, read as a browser reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from pai_scheduler.i18n import msg
from pai_scheduler.rest.cluster import AvailableAmounts
from pai_spawner.options import HubLimits, Offer, OptionProblem, options_from_form, parse_options
from pai_spawner.options_form import render_form
from pai_spawner.profiles import offer_to, read_profiles
from pai_spawner.start_preview import MachineSupply, StartPreview, Supply, VirtualClusterSupply, wrong_options
from tests.spawner.test_words import AVAILABLE, amount

POLICY = HubLimits({"Notebook": "pai/notebook:1", "Torch": "pai/torch:2"}, (".*",), 2, 4096, most_cpus=16)
EVERYTHING = Offer((POLICY.profile,), POLICY.image_names)
DEFAULTS = POLICY.defaults.to_json()
MACHINES = (
    MachineSupply("node-a", "READY", 10, 32, 20480, 102400, (("P100", 3, 4),)),
    MachineSupply("node-b", "DRAINED", 0, 32, 10240, 102400, ()),
)
SUPPLY = Supply(
    machines=MACHINES,
    gpu_types=("K80", "P100"),
    simulated=frozenset({"K80"}),
    virtual_clusters={
        "default": VirtualClusterSupply("default", True, AVAILABLE),
        "old": VirtualClusterSupply("old", False, AVAILABLE),
    },
)
PROFILES = offer_to(
    read_profiles(
        [
            {"display_name": "Write", "description": "Small <things>.", "defaults": {"cpus": 1}},
            {
                "display_name": "Train",
                "choices": {
                    "gpus": [1, 2],
                    "gpu_type": ["P100"],
                    "memory_mb": [16384, 65536],
                    "run_minutes": {"max": 480},
                    "image": True,
                },
                "allowed_images": ["lab/.*"],
            },
        ],
        POLICY,
    ),
    (),
    POLICY,
)


class Fields(HTMLParser):
    """Collects what a browser would send, the limits of the fields, and the text that is shown."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.sent: dict[str, list[str]] = {}
        self.limits: dict[str, str | None] = {}
        self.options: dict[str, list[str]] = {}
        self.disabled: list[str] = []
        self.tags: list[str] = []
        #: of labels and fields
        self.labelled: set[str] = set()
        self.ids: dict[str, str] = {}
        self.text = ""
        self._select = ""
        self._hidden = False
        self.feed(page)
        for name, values in self.options.items():
            self.sent.setdefault(name, values[:1])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = dict(attrs)
        self._hidden = tag in ("script", "style")
        if tag == "label" and values.get("for"):
            self.labelled.add(str(values["for"]))
        if tag in ("select", "input") and values.get("type") not in ("radio", "hidden"):
            self.ids[values["name"] or ""] = values["id"] or ""
        if tag == "select":
            self._select = values["name"] or ""
            self.options[self._select] = []
        elif tag == "option":
            self.options[self._select].append(values["value"] or "")
            if "disabled" in values:
                self.disabled.append(values["value"] or "")
            if "selected" in values:
                self.sent[self._select] = [values["value"] or ""]
        elif tag == "input" and (values.get("type") != "radio" or "checked" in values):
            self.sent[values["name"] or ""] = [values["value"] or ""]
            self.limits[values["name"] or ""] = values.get("max")

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002
        self._hidden = False

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.text += data


def fields_of(
    chosen: Mapping[str, Any] = DEFAULTS,
    offer: Offer = EVERYTHING,
    supply: Supply | None = SUPPLY,
    locale: str = "en",
    **more: Any,
) -> Fields:
    return Fields(render_form(offer, supply, chosen, locale, **more))


def test_the_untouched_form_sends_what_was_chosen_last_time() -> None:
    raw = {
        "image": "pai/torch:2",
        "gpus": 2,
        "gpu_type": "P100",
        "cpus": 4,
        "memory_mb": 9000,
        "run_minutes": 90,
    }
    chosen = parse_options(raw, EVERYTHING)
    fields = fields_of(chosen.to_json())
    assert parse_options(options_from_form(fields.sent), EVERYTHING) == chosen


def test_a_typed_image_is_kept() -> None:
    chosen = replace(POLICY.defaults, image="my/own:3")
    fields = fields_of(chosen.to_json())
    assert parse_options(options_from_form(fields.sent), EVERYTHING) == chosen


def test_what_was_refused_is_shown_again_as_it_was_typed() -> None:
    fields = fields_of({"cpus": "0", "memory_mb": "much", "gpu_type": "V100"})
    assert (fields.sent["cpus"], fields.sent["memory_mb"]) == (["0"], ["much"])
    assert fields.sent["gpus"] == ["0"]


def test_every_choice_says_what_is_free_for_this_person() -> None:
    text = fields_of().text
    for line in (
        "P100: 1 of 2 free",
        "K80 (simulated): none in this virtual cluster",
        "10 of 19 free",
        "29.3 GB of 58.6 GB free",
        "default: 1/2 × P100 free",
    ):
        assert line in text


def test_the_free_amounts_are_those_of_the_virtual_cluster_that_is_chosen() -> None:
    vision = VirtualClusterSupply("vision", True, {**AVAILABLE, "free": amount(1, 1024, P100=2)})
    supply = replace(SUPPLY, virtual_clusters={**SUPPLY.virtual_clusters, "vision": vision})
    assert "P100: 2 of 2 free" in fields_of({**DEFAULTS, "virtual_cluster": "vision"}, supply=supply).text


def test_a_stopped_virtual_cluster_cannot_be_chosen() -> None:
    fields = fields_of()
    assert fields.disabled == ["old"]
    assert "old: 1/2 × P100 free (stopped)" in fields.text


def test_numbers_are_limited_by_the_hub() -> None:
    limits = fields_of().limits
    assert (limits["cpus"], limits["memory_mb"]) == ("16", None)


def test_every_field_has_a_label() -> None:
    for offer in (EVERYTHING, PROFILES):
        fields = fields_of({}, offer)
        assert set(fields.ids.values()) <= fields.labelled
        assert len(set(fields.ids.values())) == len(fields.ids)


def test_where_free_text_is_not_allowed_there_is_no_field_for_it() -> None:
    listed = replace(POLICY, allowed_images=())
    assert "other_image" not in fields_of(offer=Offer((listed.profile,), listed.image_names)).sent


def test_without_a_scheduler_the_form_can_still_be_sent() -> None:
    fields = fields_of(supply=None)
    assert "The scheduler does not answer" in fields.text
    assert parse_options(options_from_form(fields.sent), EVERYTHING) == POLICY.defaults


def test_a_cluster_without_gpus_says_so() -> None:
    none = VirtualClusterSupply("default", True, {**AVAILABLE, "most": amount(1, 1), "free": amount(1, 1)})
    supply = replace(SUPPLY, gpu_types=(), simulated=frozenset(), virtual_clusters={"default": none})
    assert "This cluster has no GPUs." in fields_of(supply=supply).text


def test_the_page_is_titled_by_what_one_gets_and_begins_with_the_answer() -> None:
    answer = StartPreview(
        "never", msg("{a}", a="Never!"), msg("{a}", a="8 × P100"), "because", advice=msg("{a}", a="less")
    )
    text = fields_of(answer=answer, server="训练 <1>").text
    for words in ("训练 <1>:", "8 × P100", "Never!", "Because", "less"):
        assert words in text
    assert "2 CPUs, 4 GB" in fields_of().text


def test_what_is_wrong_is_listed() -> None:
    answer = wrong_options([OptionProblem("cpus", msg("{a}", a="Too many <CPUs>."))])
    assert "Too many <CPUs>." in fields_of(answer=answer).text


def test_each_profile_says_what_it_is_and_shows_what_may_be_chosen_in_it() -> None:
    fields = fields_of({}, PROFILES)
    for words in ("Write", "1 CPU, 4 GB", "Small <things>.", "Train", "1 × P100, 2 CPUs, 16 GB"):
        assert words in " ".join(fields.text.split())
    assert fields.sent["profile"] == ["write"]
    assert fields.options["train.gpus"] == ["1", "2"]
    assert fields.options["train.memory_mb"] == ["16384", "65536"]
    assert fields.options["train.run_minutes"] == ["60", "120", "240", "480"]
    assert fields.options["train.image"] == ["pai/notebook:1", "pai/torch:2"]
    assert "train.other_image" in fields.sent
    assert not [name for name in fields.ids if name.startswith("write.")]
    assert not {"train.gpu_type", "train.cpus"} & fields.ids.keys()


@pytest.mark.parametrize("slug", ["write", "train"])
def test_the_form_with_profiles_sends_what_was_chosen_last_time(slug: str) -> None:
    raw = {"profile": slug} if slug == "write" else {"profile": slug, "gpus": 2, "run_minutes": 240}
    chosen = parse_options({"run_minutes": 60, **raw} if slug == "train" else raw, PROFILES)
    fields = fields_of(chosen.to_json(), PROFILES)
    assert parse_options(options_from_form(fields.sent), PROFILES) == chosen


def test_to_whom_no_profile_is_open_that_is_said() -> None:
    assert "No profile of this Hub is open to you." in fields_of({}, Offer(())).text


def test_nothing_that_came_from_outside_becomes_markup() -> None:
    evil = '"><b>alert(1)</b>'
    policy = replace(POLICY, images={evil: evil})
    available: AvailableAmounts = {**AVAILABLE, "most": amount(1, 1, **{evil: 1})}
    supply = replace(
        SUPPLY,
        machines=(MachineSupply(evil, "READY", 1, 1, 1, 1, ((evil, 1, 1),)), *MACHINES),
        gpu_types=(evil,),
        virtual_clusters={evil: VirtualClusterSupply(evil, True, available)},
    )
    (profile,) = read_profiles(
        [{"display_name": evil, "description": evil, "choices": {"image": True}}], policy
    )
    offers = (Offer((policy.profile,), policy.image_names), Offer((profile,), policy.image_names))
    for offer in offers:
        raw = {"image": "x" + evil, "virtual_cluster": evil, "cpus": evil}
        answer = wrong_options([OptionProblem(evil, msg("{a}", a=evil))])
        fields = fields_of(raw, offer, supply, answer=answer, address=evil, server=evil)
        assert "b" not in fields.tags
        assert fields.tags.count("script") == 1
    assert fields_of({"image": "x" + evil}, offers[0]).sent["other_image"] == ["x" + evil]


def test_the_form_speaks_chinese() -> None:
    page = render_form(EVERYTHING, SUPPLY, DEFAULTS, "zh_CN")
    assert 'lang="zh-CN"' in page
    assert "P100：2 块中 1 块空闲" in Fields(page).text


def test_the_form_shows_profiles_in_the_language_of_the_reader() -> None:
    raw: list[dict[str, Any]] = [
        {
            "display_name": {"en": "Write", "zh-CN": "编写"},
            "description": {"en": "Small.", "zh-CN": "小的。"},
        },
        {"display_name": "Train"},
    ]
    offer = offer_to(read_profiles(raw, POLICY), (), POLICY)
    english, chinese = (Fields(render_form(offer, SUPPLY, {}, one)).text for one in ("en", "zh_CN"))
    assert ["Write" in english, "Small." in english, "编写" in english] == [True, True, False]
    assert ["编写" in chinese, "小的。" in chinese, "Write" in chinese] == [True, True, False]
    assert "Train" in chinese


def test_each_of_several_machines_is_shown_with_what_it_has_free() -> None:
    text = " ".join(fields_of().text.split())
    assert "Machines: 1 of 2 take servers" in text
    assert "node-a ready P100: 3/4 10/32 20/100" in text
    assert "node-b drained: nothing new starts there – 0/32 10/100" in text
    alone = replace(SUPPLY, machines=MACHINES[:1])
    assert "Machines" not in fields_of(supply=alone).text


def test_of_a_thousand_machines_a_hundred_are_shown_and_the_others_counted() -> None:
    many = tuple(replace(MACHINES[0], name=f"n{number}.") for number in range(1000))
    text = fields_of(supply=replace(SUPPLY, machines=many)).text
    assert ("n99." in text, "n100." in text, "and 900 more" in text) == (True, False, True)
