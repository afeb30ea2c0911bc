"""Preview of a start, told before *Start* is pressed: what is free, what would happen; pure.

The same verdict of the scheduler refuses a start, so that the page, the REST API and Start never differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pai_scheduler.client.rest import about_so_long
from pai_scheduler.i18n import Message
from pai_scheduler.rest.cluster import Amount, AvailableAmounts, NodeInfo, VirtualClusterInfo
from pai_scheduler.rest.models import Validation

from .messages import counted, msg
from .options import Offer, OptionProblem, Options

# Availability of what a profile asks for, in words of the form.


# What was chosen, and what is free of it, in words.

_MB_PER_GB = 1024
_HOUR, _DAY = 60, 24 * 60


def title_of(options: Options) -> Message:
    """Say what one gets: `1 × P100, 4 CPUs, 16 GB`."""
    cpus, memory = cpus_words(options.cpus), memory_words(options.memory_mb)
    if not options.gpus:
        return msg("{cpus}, {memory}", cpus=cpus, memory=memory)
    gpus = gpus_words(options.gpus, options.gpu_type)
    return msg("{gpus}, {cpus}, {memory}", gpus=gpus, cpus=cpus, memory=memory)


def gpus_words(count: int, gpu_type: str) -> Message:
    """Say how many GPUs of which type; an empty one is any type."""
    return msg("{gpus} × {type}", gpus=count, type=gpu_type or msg("GPU"))


def cpus_words(count: int) -> Message:
    """Say how many CPUs."""
    return counted("{count} CPU", "{count} CPUs", count=count)


def memory_words(megabytes: int) -> Message:
    """Say an amount of memory as people do: `16 GB`, `512 MB`."""
    if megabytes < _MB_PER_GB:
        return msg("{memory} MB", memory=megabytes)
    return msg("{memory:g} GB", memory=round(megabytes / _MB_PER_GB, 1))


def duration_words(minutes: int) -> Message:
    """Say a time limit in the largest unit in which it is a whole number."""
    if minutes % _DAY == 0:
        return counted("{count} day", "{count} days", count=minutes // _DAY)
    if minutes % _HOUR == 0:
        return counted("{count} hour", "{count} hours", count=minutes // _HOUR)
    return counted("{count} minute", "{count} minutes", count=minutes)


def gpu_type_words(gpu_type: str, available: AvailableAmounts) -> Message:
    """Say how much of a type of GPU is free for somebody in a virtual cluster."""
    most = available["most"]["gpus"].get(gpu_type, 0)
    if not most:
        return msg("{type}: none in this virtual cluster", type=gpu_type)
    free = available["free"]["gpus"].get(gpu_type, 0)
    return msg("{type}: {free} of {total} free", type=gpu_type, free=free, total=most)


def virtual_cluster_words(name: str, available: AvailableAmounts) -> Message:
    """Say which GPUs somebody has in a virtual cluster, and how many of them are free."""
    free = available["free"]["gpus"]
    gpus = [
        f"{free.get(gpu_type, 0)}/{count} × {gpu_type}"
        for gpu_type, count in sorted(available["most"]["gpus"].items())
        if count
    ]
    if not gpus:
        return msg("{name}: no GPUs", name=name)
    return msg("{name}: {gpus} free", name=name, gpus=", ".join(gpus))


def gpus_note(gpu_type: str, available: AvailableAmounts) -> Message:
    """Say how many GPUs one server may have: all of them are on one machine."""
    most = most_gpus(gpu_type, available)
    return msg("All GPUs of a server are on one machine: at most {most} here.", most=most)


def cpus_note(available: AvailableAmounts) -> Message:
    """Say how many CPUs are free for somebody in a virtual cluster."""
    free, most = available["free"]["cpus"], available["most"]["cpus"]
    return msg("{free} of {total} free", free=free, total=most)


def memory_note(available: AvailableAmounts) -> Message:
    """Say how much memory is free for somebody in a virtual cluster."""
    free, most = available["free"]["memoryMB"], available["most"]["memoryMB"]
    return msg("{free} of {total} free", free=memory_words(free), total=memory_words(most))


def most_gpus(gpu_type: str, available: AvailableAmounts) -> int:
    """Return how many GPUs one server can ever have; `gpu_type` empty: of whichever type has most."""
    counts = available["mostOnOne"]["gpus"]
    return counts.get(gpu_type, 0) if gpu_type else max(counts.values(), default=0)


# What a server has, in words.


def describe(*, cpus: int, memory_mb: int, gpus: int, gpu_type: str) -> Message:
    """Say what a server has; `gpu_type` empty: any."""
    some_cpus = counted("{count} CPU", "{count} CPUs", count=cpus)
    if not gpus:
        return msg("{cpus} and {memory} MB of memory", cpus=some_cpus, memory=memory_mb)
    return msg(
        "{cpus}, {memory} MB of memory and {gpus} × {type}",
        cpus=some_cpus,
        memory=memory_mb,
        gpus=gpus,
        type=gpu_type or msg("any GPU"),
    )


# What there is and what is free, as the person who chooses a server may have it.

_NOTHING: Amount = {"cpus": 0, "memoryMB": 0, "storageGB": 0, "gpus": {}}
#: what somebody has in a virtual cluster that is not open
NOTHING: AvailableAmounts = {
    "free": _NOTHING,
    "most": _NOTHING,
    "freeOnOne": _NOTHING,
    "mostOnOne": _NOTHING,
}


@dataclass(frozen=True, slots=True)
class VirtualClusterSupply:
    """A virtual cluster that is open to the person, and what of it their next server could have.

    Servers are not stopped for others, so they never borrow: it is what the virtual cluster has of its own.
    """

    name: str
    running: bool
    available: AvailableAmounts


@dataclass(frozen=True, slots=True)
class MachineSupply:
    """Free resources of one node: memory in MB; `gpus`: (type, free, total).

    `state`: as of `NodeInfo`, or CLOSED where an administrator has closed a ready one.
    """

    name: str
    state: str
    free_cpus: int
    total_cpus: int
    free_memory_mb: int
    total_memory_mb: int
    gpus: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Supply:
    """The cluster as a person choosing a server sees it. `simulated`: types of GPU that are only declared."""

    machines: tuple[MachineSupply, ...]
    gpu_types: tuple[str, ...]
    simulated: frozenset[str]
    virtual_clusters: Mapping[str, VirtualClusterSupply]

    def available_in(self, virtual_cluster: str) -> AvailableAmounts:
        """Return what a server could have in a virtual cluster; nothing where it is not open."""
        found = self.virtual_clusters.get(virtual_cluster)
        return NOTHING if found is None else found.available


def supply_of(
    nodes: Iterable[NodeInfo],
    virtual_clusters: Mapping[str, VirtualClusterInfo],
    available: Mapping[str, AvailableAmounts],
) -> Supply:
    """Put together what the scheduler tells of nodes, virtual clusters, and what somebody may have."""
    machines = list(nodes)
    gpus = [gpu for node in machines for gpu in node["gpus"]]
    return Supply(
        machines=tuple(map(_machine_supply, machines)),
        gpu_types=tuple(sorted({gpu_type for node in machines for gpu_type in node["total"]["gpus"]})),
        simulated=frozenset(gpu["type"] for gpu in gpus if gpu["simulated"]),
        virtual_clusters={
            name: VirtualClusterSupply(name, info["status"] == "RUNNING", available[name])
            for name, info in virtual_clusters.items()
            if name in available
        },
    )


def _machine_supply(node: NodeInfo) -> MachineSupply:
    total, used = node["total"], node["used"]
    return MachineSupply(
        node["name"],
        "CLOSED" if node["closed"] and node["state"] == "READY" else node["state"],
        total["cpus"] - used["cpus"],
        total["cpus"],
        total["memoryMB"] - used["memoryMB"],
        total["memoryMB"],
        tuple(
            (gpu_type, count - used["gpus"].get(gpu_type, 0), count)
            for gpu_type, count in sorted(total["gpus"].items())
        ),
    )


Fits = Literal["now", "later", "never", "wrong", "unknown"]


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Another virtual cluster that would do better. `now`: it would start there at once."""

    virtual_cluster: str
    now: bool

    @property
    def message(self) -> Message:
        """Say what a click on it does."""
        if self.now:
            return msg("Take {vc}: it would start there now", vc=self.virtual_cluster)
        return msg("Take {vc}: it fits there", vc=self.virtual_cluster)


@dataclass(frozen=True, slots=True)
class StartPreview:
    """`fits`: now, later, never; `wrong`: `problems` say what; `unknown`: nobody could say.

    `sentence` is what matters, `reason` why; `ends`: what ends the server, where it has a time limit.
    """

    fits: Fits
    sentence: Message
    title: Message | None = None
    reason: str = ""
    ends: Message | None = None
    queue_position: int | None = None
    starts_within: int | None = None
    advice: Message | None = None
    elsewhere: Sequence[Elsewhere] = ()
    problems: Sequence[OptionProblem] = ()
    free: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self, locale: str) -> dict[str, Any]:
        """Return it as the Hub sends it, in a language."""

        def text(message: Message | None) -> str:
            return "" if message is None else message.in_locale(locale)

        def texts(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {key: texts(one) for key, one in value.items()}
            return text(value)

        return {
            "fits": self.fits,
            "title": text(self.title),
            "sentence": text(self.sentence),
            # it begins a sentence here, and goes on with one where the scheduler itself shows it
            "reason": self.reason[:1].upper() + self.reason[1:],
            "advice": text(self.advice),
            "ends": text(self.ends),
            "queuePlace": self.queue_position,
            "startsWithin": self.starts_within,
            "elsewhere": [
                {"virtual_cluster": one.virtual_cluster, "now": one.now, "text": text(one.message)}
                for one in self.elsewhere
            ],
            "problems": [{"option": one.option, "message": text(one.message)} for one in self.problems],
            "free": texts(self.free),
        }


def wrong_options(problems: Sequence[OptionProblem]) -> StartPreview:
    """Answer to options that make no sense."""
    return StartPreview("wrong", msg("This cannot be started as it is."), problems=problems)


def limited(options: Options, limit: Message) -> StartPreview:
    """Answer to what goes beyond a limit of this Hub on servers."""
    problem = OptionProblem("", limit)
    return StartPreview("wrong", msg("This cannot be started now."), title_of(options), problems=[problem])


def unreachable(options: Options) -> StartPreview:
    """Answer while the scheduler cannot be asked."""
    text = msg(
        "The scheduler does not answer at the moment. You can start a server all the same; it will wait."
    )
    return StartPreview("unknown", text, title_of(options))


def refusal_of(verdict: Validation) -> str | None:
    """Return why a server with this verdict is not started at all; None: it is."""
    if verdict["errors"]:
        return " ".join(error["message"] for error in verdict["errors"])
    return verdict["reason"] if verdict["fits"] == "never" else None


def answer_to(
    options: Options, verdict: Validation, available: Mapping[str, AvailableAmounts], offer: Offer
) -> StartPreview:
    """Put into words what the scheduler foresees of a server.

    `available`: by virtual cluster open to its user.
    """
    own = available.get(options.virtual_cluster, NOTHING)
    free = {
        **free_words(options, own),
        "virtual_clusters": {name: virtual_cluster_words(name, one) for name, one in available.items()},
    }
    refused = refusal_of(verdict)
    title, fits = title_of(options), verdict["fits"]
    others = _elsewhere(options, verdict, available, offer)
    if refused is not None or fits == "never":
        return StartPreview(
            "never",
            msg("It would never start as it is."),
            title,
            refused or "",
            advice=_advice(options, own),
            elsewhere=others,
            free=free,
        )
    ends = _ends(verdict)
    if fits == "now":
        return StartPreview(
            "now", msg("Starts now."), title, verdict["reason"], ends, starts_within=0, free=free
        )
    limits = verdict["limits"]
    place = limits["queuePlace"] if limits is not None else 1
    return StartPreview(
        "later",
        _waiting(place, options.virtual_cluster, verdict["startsWithin"]),
        title,
        verdict["reason"],
        ends,
        place,
        verdict["startsWithin"],
        elsewhere=others,
        free=free,
    )


def free_words(options: Options, available: AvailableAmounts) -> dict[str, Any]:
    """Say what is free of each field, in the virtual cluster that was chosen."""
    types = available["most"]["gpus"]
    return {
        "gpu_types": {gpu_type: gpu_type_words(gpu_type, available) for gpu_type in sorted(types)},
        "gpus": gpus_note(options.gpu_type, available) if types else msg("This cluster has no GPUs."),
        "cpus": cpus_note(available),
        "memory_mb": memory_note(available),
    }


def _waiting(place: int, virtual_cluster: str, seconds: int | None) -> Message:
    if seconds is None:
        return msg("It would wait: place {place} in the queue of {vc}.", place=place, vc=virtual_cluster)
    return msg(
        "It would wait: place {place} in the queue of {vc}, {time}.",
        place=place,
        vc=virtual_cluster,
        time=about_so_long(seconds),
    )


def _ends(verdict: Validation) -> Message | None:
    limits = verdict["limits"]
    if limits is None or limits["maxRunSeconds"] is None:
        return None
    minutes = max(1, limits["maxRunSeconds"] // 60)
    return msg(
        "It is ended {time} after its start, whatever runs in it.",
        time=duration_words(minutes),
    )


def _elsewhere(
    options: Options, verdict: Validation, available: Mapping[str, AvailableAmounts], offer: Offer
) -> list[Elsewhere]:
    """Find other virtual clusters that may be chosen and would do better: at once, or at all."""
    profile = offer.find(options.profile) or offer.default
    choice = profile.choices["virtual_cluster"]
    now = [Elsewhere(name, True) for name in verdict["startsNowIn"] if choice.allows(name)]
    if now or verdict["fits"] != "never":
        return now
    names = (name for name in available if name != options.virtual_cluster and choice.allows(name))
    return [Elsewhere(name, False) for name in names if not list(_beyond(options, available[name]))]


def _advice(options: Options, available: AvailableAmounts) -> Message | None:
    """Say how much may be chosen of what was too much; None where that is not why."""
    if options.gpus and not most_gpus(options.gpu_type, available):
        return msg("Choose another type of GPU, another virtual cluster, or no GPU.")
    found = list(_beyond(options, available))
    if not found:
        return None
    limits: Message = found[0]
    for other in found[1:]:
        limits = msg("{one}, {other}", one=limits, other=other)
    return msg("Choose at most {limits}.", limits=limits)


def _beyond(options: Options, available: AvailableAmounts) -> Iterable[Message]:
    """Return the most of each resource of which too much was chosen for a machine, or for the share."""
    most = available["mostOnOne"]
    if options.gpus > (gpus := most_gpus(options.gpu_type, available)):
        yield gpus_words(gpus, options.gpu_type)
    if options.cpus > most["cpus"]:
        yield cpus_words(most["cpus"])
    if options.memory_mb > most["memoryMB"]:
        yield memory_words(most["memoryMB"])
