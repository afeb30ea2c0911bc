"""Judges the shared folders that servers are started with: each is to be one that the scheduler has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from traitlets import TraitError

from pai_scheduler.server.doctor.finding import Finding, good, note, wrong

from ..messages import msg
from ..profiles import InvalidProfiles
from .hub_configuration import HubConfiguration
from .offers import offered_profiles, spawner_settings

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
