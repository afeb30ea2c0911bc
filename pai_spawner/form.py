"""The form on the Hub's spawn page: what can be chosen, and beside it what is free now."""

from __future__ import annotations

from functools import cache, partial

from jinja2 import Environment, PackageLoader, select_autoescape

from pai_scheduler.job.messages import translate, translate_counted

from .messages import PACKAGE, msg
from .options import LEAST_MEMORY_MB, Options, Policy
from .supply import Supply

#: Rows of the table of machines; a page with thousands is of no use.
_MOST_MACHINES = 100
_STATES = {
    "READY": msg("ready"),
    "PAUSED": msg("paused: nothing new starts there"),
    "DRAINED": msg("drained: nothing new starts there"),
    "FULL": msg("its disk is almost full: nothing new starts there"),
    "LOST": msg("lost: it does not answer"),
}


def render_form(policy: Policy, supply: Supply | None, chosen: Options, locale: str) -> str:
    """Write the form's fields as HTML; `supply` None: the scheduler is away, no numbers are shown."""
    return (
        _environment()
        .get_template("options_form.html")
        .render(
            t=partial(translate, locale=locale, package=PACKAGE),
            counted=partial(translate_counted, locale=locale, package=PACKAGE),
            lang=locale.replace("_", "-"),
            policy=policy,
            supply=supply,
            chosen=chosen,
            # an image that is not on the list was typed
            typed_image=chosen.image if chosen.image not in policy.images.values() else "",
            most_cpus=_least_limit(policy.most_cpus, supply.largest_node_cpus if supply else 0),
            most_memory_mb=_least_limit(
                policy.most_memory_mb, supply.largest_node_memory_mb if supply else 0
            ),
            most_gpus=_least_limit(policy.most_gpus, supply.most_gpus_per_node if supply else 0),
            least_memory_mb=LEAST_MEMORY_MB,
            most_machines=_MOST_MACHINES,
            machine_states={state: text.in_locale(locale) for state, text in _STATES.items()},
        )
    )


def _least_limit(*limits: int) -> int | None:
    """Return the smallest of the limits that are set; None where none is."""
    return min((limit for limit in limits if limit > 0), default=None)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("pai_spawner"),
        autoescape=select_autoescape(default=True),
        trim_blocks=True,
        lstrip_blocks=True,
    )
