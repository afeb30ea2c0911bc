"""The options form, read as a browser reads it."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

from pai_spawner.form import render_form
from pai_spawner.options import Policy, options_from_form, parse_options
from pai_spawner.supply import GpuSupply, MachineSupply, Supply, VirtualClusterSupply

POLICY = Policy({"Notebook": "pai/notebook:1", "Torch": "pai/torch:2"}, True, 2, 4096, most_cpus=16)
MACHINES = (
    MachineSupply("node-a", "READY", 10, 32, 20480, 102400, (("P100", 3, 4),)),
    MachineSupply("node-b", "DRAINED", 0, 32, 10240, 102400, ()),
)
SUPPLY = Supply(
    machines=MACHINES,
    gpus=(GpuSupply("P100", 3, 6, 4, 2, False), GpuSupply("TITANX", 0, 2, 2, 0, True)),
    virtual_clusters=(
        VirtualClusterSupply("default", 25.0, 1, True, {"P100": 2}),
        VirtualClusterSupply("old", 0.0, 0, False),
    ),
    free_cpus=10,
    total_cpus=64,
    largest_node_cpus=32,
    free_memory_mb=30000,
    total_memory_mb=200000,
    largest_node_memory_mb=100000,
)


class Fields(HTMLParser):
    """Collects what a browser would send, the limits of the fields, and the text that is shown."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.sent: dict[str, list[str]] = {}
        self.limits: dict[str, str | None] = {}
        self.options: dict[str, list[str]] = {}
        self.tags: list[str] = []
        self.text = ""
        self._select = ""
        self.feed(page)
        for name, values in self.options.items():
            self.sent.setdefault(name, values[:1])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        values = dict(attrs)
        if tag == "select":
            self._select = values["name"] or ""
            self.options[self._select] = []
        elif tag == "option":
            self.options[self._select].append(values["value"] or "")
            if "selected" in values:
                self.sent[self._select] = [values["value"] or ""]
        elif tag == "input":
            self.sent[values["name"] or ""] = [values["value"] or ""]
            self.limits[values["name"] or ""] = values.get("max")

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_untouched_form_sends_what_was_chosen_last_time() -> None:
    chosen = parse_options(
        {"image": "pai/torch:2", "gpus": 2, "gpu_type": "TITANX", "cpus": 4, "memory_mb": 9000}, POLICY
    )
    fields = Fields(render_form(POLICY, SUPPLY, chosen, "en"))
    assert parse_options(options_from_form(fields.sent), POLICY) == chosen


def test_a_typed_image_is_kept() -> None:
    chosen = replace(POLICY.defaults, image="my/own:3")
    fields = Fields(render_form(POLICY, SUPPLY, chosen, "en"))
    assert parse_options(options_from_form(fields.sent), POLICY) == chosen


def test_every_choice_says_what_is_free() -> None:
    text = Fields(render_form(POLICY, SUPPLY, POLICY.defaults, "en")).text
    for line in (
        "P100: 3 of 6 free",
        "TITANX: 0 of 2 free (simulated)",
        "10 of 64 free",
        "30000 MB of 200000 MB free",
        "default: 25 % in use, 1 job waiting",
    ):
        assert line in text


def test_numbers_are_limited_by_the_hub_and_by_the_largest_node() -> None:
    limits = Fields(render_form(POLICY, SUPPLY, POLICY.defaults, "en")).limits
    assert (limits["cpus"], limits["memory_mb"], limits["gpus"]) == ("16", "100000", "4")


def test_where_free_text_is_not_allowed_there_is_no_field_for_it() -> None:
    policy = replace(POLICY, any_image=False)
    assert "other_image" not in Fields(render_form(policy, SUPPLY, policy.defaults, "en")).sent


def test_without_a_scheduler_the_form_can_still_be_sent() -> None:
    fields = Fields(render_form(POLICY, None, POLICY.defaults, "en"))
    assert "The scheduler does not answer" in fields.text
    assert parse_options(options_from_form(fields.sent), POLICY) == POLICY.defaults


def test_a_cluster_without_gpus_says_so() -> None:
    fields = Fields(render_form(POLICY, replace(SUPPLY, gpus=()), POLICY.defaults, "en"))
    assert "This cluster has no GPUs." in fields.text
    assert fields.limits["gpus"] == "0"


def test_nothing_that_came_from_outside_becomes_markup() -> None:
    evil = '"><script>alert(1)</script>'
    policy = replace(POLICY, images={evil: evil})
    supply = replace(
        SUPPLY,
        machines=(MachineSupply(evil, "READY", 1, 1, 1, 1, ((evil, 1, 1),)), *MACHINES),
        gpus=(GpuSupply(evil, 1, 1, 1, 1, False),),
        virtual_clusters=(VirtualClusterSupply(evil, 0.0, 0, True),),
    )
    fields = Fields(render_form(policy, supply, replace(policy.defaults, image="x" + evil), "en"))
    assert "script" not in fields.tags
    assert fields.sent["other_image"] == ["x" + evil]


def test_the_form_speaks_chinese() -> None:
    page = render_form(POLICY, SUPPLY, POLICY.defaults, "zh_CN")
    assert 'lang="zh-CN"' in page
    assert "P100：6 块中 3 块空闲" in Fields(page).text


def test_each_virtual_cluster_says_which_gpus_its_servers_may_have() -> None:
    assert "servers may have 2 × P100" in render_form(POLICY, SUPPLY, POLICY.defaults, "en")
    assert "服务器最多可用 2 × P100" in render_form(POLICY, SUPPLY, POLICY.defaults, "zh_CN")


def test_each_of_several_machines_is_shown_with_what_it_has_free() -> None:
    text = " ".join(Fields(render_form(POLICY, SUPPLY, POLICY.defaults, "en")).text.split())
    assert "Machines: 1 of 2 take servers" in text
    assert "node-a ready P100: 3/4 10/32 20/100" in text
    assert "node-b drained: nothing new starts there – 0/32 10/100" in text
    alone = replace(SUPPLY, machines=MACHINES[:1])
    assert "Machines" not in render_form(POLICY, alone, POLICY.defaults, "en")


def test_of_a_thousand_machines_a_hundred_are_shown_and_the_others_counted() -> None:
    many = tuple(replace(MACHINES[0], name=f"n{number}.") for number in range(1000))
    text = Fields(render_form(POLICY, replace(SUPPLY, machines=many), POLICY.defaults, "en")).text
    assert ("n99." in text, "n100." in text, "and 900 more" in text) == (True, False, True)
