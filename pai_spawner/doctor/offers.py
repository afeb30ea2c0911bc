"""Judges what people are offered: profiles, rules for sessions, virtual clusters, and the groups in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from datetime import timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from traitlets import TraitError
from traitlets.config import Config

from pai_scheduler.server.doctor.finding import Finding, good, note, wrong

from ..choices import Profile
from ..messages import msg
from ..profiles import InvalidProfiles, read_profiles
from ..sessions.policy import SETTING_NAMES, Condition, Settings
from ..sessions.policy import Policy as SessionPolicy
from ..sessions.policy_file import PolicyError, read_policy
from ..settings import SpawnerSettings
from .hub_configuration import HubConfiguration


def of_offers(hub: HubConfiguration) -> Iterator[Finding]:
    """Judge the files by themselves, then whether the groups in them are there."""
    named: dict[str, set[str]] = {}
    try:
        profiles = offered_profiles(hub)
    except (InvalidProfiles, TraitError) as error:
        profiles = ()
        yield wrong(
            msg("The profiles cannot be used: {error}", error=error), msg("Correct them, and start the Hub.")
        )
    if profiles:
        yield good(msg("The profiles can be used: {count} of them.", count=len(profiles)))
    for profile in profiles:
        for group in profile.groups:
            named.setdefault(group, set()).add(str(msg("the profile {name}", name=profile.name)))
    file = str(hub.config.PAISpawner.get("sessions_file", ""))
    if file:
        try:
            policy = read_policy(hub.file(file)).policy
        except PolicyError as error:
            yield wrong(error.message, msg("Correct it: no notebook server ends by itself until then."))
        else:
            yield good(msg("The sessions file {file} can be read.", file=file))
            yield from _limits(policy, profiles)
            for group in _session_groups(policy):
                named.setdefault(group, set()).add(str(msg("the sessions file")))
    for group, cluster in _cluster_groups(hub.cluster):
        named.setdefault(group, set()).add(str(msg("the virtual cluster {name}", name=cluster)))
    yield from _groups(hub, named)


def offered_profiles(hub: HubConfiguration) -> tuple[Profile, ...]:
    """Return the profiles of a configuration; raises InvalidProfiles or TraitError where they are wrong."""
    settings = spawner_settings(hub)
    return read_profiles(settings.profiles, settings.policy)


def spawner_settings(hub: HubConfiguration) -> SpawnerSettings:
    """Return what is set of the spawner; raises TraitError where that is wrong."""
    said = hub.config.PAISpawner
    own = {name: said[name] for name in SpawnerSettings.class_trait_names() if name in said}
    return SpawnerSettings(config=Config(SpawnerSettings=own))


def _limits(policy: SessionPolicy, profiles: tuple[Profile, ...]) -> Iterator[Finding]:
    """Judge what a rule alone, and all rules that hold for everybody, say of one another."""
    always: dict[str, Any] = {}
    for number, rule in enumerate(policy.rules, 1):
        own = {name: value for name, value in rule.sets.items() if name in SETTING_NAMES}
        if rule.when == Condition():
            always |= own
        yield from _limits_of(Settings(**{**always, **own}), number)
    lifetime: timedelta | None = always.get("lifetime")
    for profile in profiles:
        minutes = profile.defaults.run_minutes
        if lifetime is not None and minutes and timedelta(minutes=minutes) > lifetime:
            yield note(
                msg(
                    "The profile {name} offers {minutes} minutes, but every session ends after {lifetime}.",
                    name=profile.name,
                    minutes=minutes,
                    lifetime=_short(lifetime),
                ),
                msg("Make run_minutes smaller, or lifetime in the sessions file longer."),
            )


def _limits_of(settings: Settings, number: int) -> Iterator[Finding]:
    idle, lifetime, warn = settings.idle_after, settings.lifetime, settings.warn_before
    if idle is not None and warn >= idle:
        yield wrong(
            msg(
                "Rule {number} of the sessions file warns {warn} before the end of a session that is ended "
                "when it has idled for {idle}: it is warned all the time.",
                number=number,
                warn=_short(warn),
                idle=_short(idle),
            ),
            msg("Make warnBefore shorter than idleAfter."),
        )
    if idle is not None and lifetime is not None and idle > lifetime:
        yield note(
            msg(
                "Rule {number} of the sessions file: idleAfter ({idle}) never comes before lifetime "
                "({lifetime}).",
                number=number,
                idle=_short(idle),
                lifetime=_short(lifetime),
            ),
            msg("Make idleAfter shorter, or leave it out."),
        )
    if settings.extend_times and not settings.extend_by:
        yield note(
            msg(
                "Rule {number} of the sessions file has extendTimes without extendBy.",
                number=number,
            ),
            msg("Say by how much a session may be extended, as in: {example}", example="extendBy: 2h"),
        )


def _session_groups(policy: SessionPolicy) -> Set[str]:
    in_rules = (rule.when.groups or frozenset() for rule in policy.rules)
    return frozenset(policy.groups).union(*in_rules)


def _cluster_groups(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return each group that a virtual cluster is open to, with that cluster."""
    clusters = document.get("virtualClusters")
    for name, said in clusters.items() if isinstance(clusters, Mapping) else ():
        groups = said.get("groups") if isinstance(said, Mapping) else None
        for group in groups if isinstance(groups, list) else ():
            yield str(group), str(name)


def _groups(hub: HubConfiguration, named: Mapping[str, Set[str]]) -> Iterator[Finding]:
    """Judge whether the Hub has the groups that are named: who is in none is offered less, without a word."""
    if not named:
        return
    known = _known_groups(hub)
    if known is None:
        return  # what is wrong with the database is said elsewhere
    lacking = {group: places for group, places in sorted(named.items()) if group not in known}
    managed = bool(hub.config.Authenticator.get("manage_groups")) or bool(
        hub.config[hub.app.authenticator_class.__name__].get("manage_groups")
    )
    for group, places in lacking.items():
        text = msg(
            "There is no group {group} in the Hub, but in {places}.",
            group=group,
            places=", ".join(sorted(places)),
        )
        if managed:
            yield note(text, msg("It comes when its first member logs in; else see its spelling."))
        else:
            yield wrong(text, msg("Make it on the Hub's administration page, or see its spelling."))
    if not lacking:
        yield good(msg("The Hub has all groups that are named: {groups}.", groups=", ".join(sorted(named))))


def _known_groups(hub: HubConfiguration) -> frozenset[str] | None:
    """Return the groups of the Hub's database and of its configuration; None: it cannot be asked."""
    said = frozenset(hub.app.load_groups)
    place = sa.make_url(str(hub.app.db_url))
    if place.get_backend_name() == "sqlite":
        file = hub.file(place.database or "")
        if not file.exists():
            return said
        place = sa.make_url(f"sqlite:///file:{file}?mode=ro&uri=true")
    try:
        engine = sa.create_engine(place)
        try:
            with engine.connect() as connection:
                return said | frozenset(connection.execute(sa.text("SELECT name FROM groups")).scalars())
        finally:
            engine.dispose()
    except (SQLAlchemyError, ImportError):
        return None


def _short(time: timedelta) -> str:
    hours, rest = divmod(int(time.total_seconds()), 3600)
    minutes, seconds = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
    return " ".join(f"{number}{unit}" for number, unit in parts if number) or "0s"
