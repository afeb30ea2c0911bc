"""Checks of what people are offered: profiles, rules, groups, images, shared folders."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from contextlib import closing
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import sqlalchemy as sa
from docker import DockerClient
from docker.errors import APIError, ContainerError, DockerException, ImageNotFound
from requests.exceptions import RequestException
from sqlalchemy.exc import SQLAlchemyError
from traitlets import TraitError
from traitlets.config import Config

from pai_scheduler.server.doctor.finding import Finding, good, note, wrong
from pai_spawner.options import Profile

from ..messages import msg
from ..profiles import InvalidProfiles, read_profiles
from ..sessions.policy import SETTING_NAMES, Condition, SessionSettings
from ..sessions.policy import SessionPolicy as SessionPolicy
from ..sessions.policy_file import PolicyError, read_policy
from ..settings import SpawnerSettings
from .configuration import HubConfiguration

# Judges what people are offered: profiles, rules for sessions, virtual clusters, and the groups in them.


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
        yield from _limits_of(SessionSettings(**{**always, **own}), number)
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


def _limits_of(settings: SessionSettings, number: int) -> Iterator[Finding]:
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


# Judges the images that people are offered, and whether a container reaches the Hub.

_HOST = "unix:///var/run/docker.sock"
_SECONDS = 30
_ERRORS = (DockerException, RequestException, OSError)
#: What is run in an image: its argument is an address.
_ASK = """\
import sys, urllib.request
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1], timeout=10).read()
"""


def of_images(hub: HubConfiguration) -> Iterator[Finding]:
    """Judge what is offered to people whose servers are containers; nothing is pulled."""
    said = hub.config.PAISpawner
    for pattern in said.get("allowed_images", []):
        try:
            re.compile(pattern)
        except re.error as error:
            yield wrong(
                msg(
                    "c.PAISpawner.allowed_images has {pattern}, which is no regular expression: {error}",
                    pattern=pattern,
                    error=error,
                ),
                msg("Correct it; a dot that is meant is written with a backslash before it."),
            )
    if hub.engine == "process":
        return  # the image's name is shown only
    offered = dict(said.get("images", {}))
    if not offered:
        yield wrong(
            msg("No image is offered."),
            msg("Set c.PAISpawner.images: name shown → image."),
        )
        return
    host = hub.environ.get("DOCKER_HOST") or _HOST
    try:
        with closing(DockerClient(base_url=host, timeout=_SECONDS)) as client:
            there = []
            for name, image in offered.items():
                finding = _image(client, str(name), str(image))
                yield finding
                if finding.advice is None:
                    there.append(str(image))
            if there and hub.engine == "docker":
                yield _way_from_a_container(client, hub, there[0])
    except _ERRORS as error:
        yield wrong(
            msg("Docker at {host} cannot be asked for images: {error}", host=host, error=_reason(error)),
            msg("See that it runs, and that this account is in the group docker."),
        )


def _image(client: DockerClient, name: str, image: str) -> Finding:
    try:
        client.images.get(image)
        return good(msg("The image of “{name}” is here: {image}.", name=name, image=image))
    except ImageNotFound:
        pass
    try:
        client.images.get_registry_data(image)
    except (APIError, *_ERRORS) as error:
        return wrong(
            msg(
                "The image of “{name}”, {image}, is not here, and its registry does not give it: {error}",
                name=name,
                image=image,
                error=_reason(error),
            ),
            msg("Build or pull it (make image builds the Hub's own), or see its name."),
        )
    return note(
        msg("The image of “{name}”, {image}, is not here, but its registry has it.", name=name, image=image),
        msg("The first server waits for it; before that: {command}", command=f"docker pull {image}"),
    )


def _way_from_a_container(client: DockerClient, hub: HubConfiguration, image: str) -> Finding:
    """Ask the Hub from a container, as servers do: by what the scheduler passes on at Docker's bridge."""
    port = hub.public_url.rpartition(":")[2]
    config = client.networks.get("bridge").attrs["IPAM"]["Config"][0]
    # (Docker names it only where an administrator chose it; its own choice is the first address)
    address = config.get("Gateway") or ip_network(config["Subnet"])[1]
    url = f"http://{address}:{port}{hub.app.base_url}hub/api/"
    try:
        client.containers.run(
            image, [_ASK, url], entrypoint=["python3", "-c"], network_mode="bridge", remove=True
        )
    except (ContainerError, APIError) as error:
        told = error.stderr if isinstance(error, ContainerError) and error.stderr else _reason(error)
        why = (told.decode(errors="replace") if isinstance(told, bytes) else str(told)).strip().splitlines()
        return wrong(
            msg("A container does not reach the Hub at {url}: {error}", url=url, error=(why or [""])[-1]),
            msg(
                "See that the scheduler runs with --front-door-port {port}, and that no firewall stops what "
                "comes from Docker's bridge.",
                port=port,
            ),
        )
    return good(msg("A container reaches the Hub at {url}.", url=url))


def _reason(error: Exception) -> str:
    return str(getattr(error, "explanation", None) or error)[:300]


# Judges the shared folders that servers are started with: each is to be one that the scheduler has.

#: All that are open to a server's user.
_ALL = "*"


def of_shared_folders(hub: HubConfiguration) -> Iterator[Finding]:
    """Judge `PAISpawner.shared_folders` and those of profiles by the cluster file, where the Hub knows it."""
    named = _named(hub)
    if not named:
        return
    if hub.engine == "process":
        for place, names in named.items():
            yield wrong(
                msg(
                    "{place} names shared folders ({names}), and the process engine has none.",
                    place=place,
                    names=", ".join(names),
                ),
                msg("Take them out, or use --engine docker: such a server does not start."),
            )
        return
    if hub.cluster_file is None and not hub.starts_scheduler:
        return
    known = _known(hub)
    lacking = {place: missing for place, names in named.items() if (missing := set(names) - known.keys())}
    for place, missing in lacking.items():
        yield wrong(
            msg(
                "{place} names shared folders that are not in the cluster file: {names}.",
                place=place,
                names=", ".join(sorted(missing)),
            ),
            msg(
                "Add them to sharedFolders in {file}, or see their spelling (known are: {known}): such a "
                "server does not start.",
                file=hub.cluster_file or msg("a cluster file"),
                known=", ".join(known) or "–",
            ),
        )
    if not lacking:
        shown = ", ".join(sorted({name for names in named.values() for name in names}))
        yield good(msg("The cluster file has all shared folders that are named: {names}.", names=shown))
    yield from _closed(hub, known)


def _named(hub: HubConfiguration) -> Mapping[str, tuple[str, ...]]:
    """Return the names that stand at each place of the configuration; none where it cannot be read."""
    try:
        settings, profiles = spawner_settings(hub), offered_profiles(hub)
    except (InvalidProfiles, TraitError):
        return {}  # said elsewhere
    places = {"c.PAISpawner.shared_folders": tuple(settings.shared_folders)}
    for profile in profiles:
        places[str(msg("The profile {name}", name=profile.name))] = profile.shared_folders or ()
    return {place: own for place, names in places.items() if (own := tuple(n for n in names if n != _ALL))}


def _known(hub: HubConfiguration) -> dict[str, frozenset[str]]:
    """Return the shared folders of the cluster file, each with the groups that it is open to; none: all."""
    folders = hub.cluster.get("sharedFolders")
    return {
        str(folder["name"]): frozenset(map(str, folder.get("groups") or ()))
        for folder in (folders if isinstance(folders, list) else ())
        if isinstance(folder, Mapping) and "name" in folder
    }


def _closed(hub: HubConfiguration, known: Mapping[str, frozenset[str]]) -> Iterator[Finding]:
    """Find the profiles that people are offered who may not have its folders."""
    for profile in offered_profiles(hub):
        for name in profile.shared_folders or ():
            groups = known.get(name, frozenset())
            if groups and not (profile.groups and profile.groups <= groups):
                yield note(
                    msg(
                        "The profile {profile} is offered to people who may not have its shared folder "
                        "{name}: that is for {groups} only.",
                        profile=profile.name,
                        name=name,
                        groups=", ".join(sorted(groups)),
                    ),
                    msg(
                        "Offer it to these groups only (groups in the profile): for others it does not start."
                    ),
                )
