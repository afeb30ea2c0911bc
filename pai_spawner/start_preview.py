"""Preview of a start, told before *Start* is pressed: what would happen to the server; pure.

The same verdict of the scheduler refuses a start, so that the page, the REST API and Start never differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pai_scheduler.client.rest import about_so_long
from pai_scheduler.i18n import Message
from pai_scheduler.rest.cluster import AvailableAmounts
from pai_scheduler.rest.models import Validation

from .availability import (
    NOTHING,
    cpus_note,
    cpus_words,
    duration_words,
    gpu_type_words,
    gpus_note,
    gpus_words,
    memory_note,
    memory_words,
    most_gpus,
    title_of,
    virtual_cluster_words,
)
from .messages import msg
from .models import Offer, OptionProblem, Options

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
    queue_place: int | None = None
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
            "queuePlace": self.queue_place,
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
