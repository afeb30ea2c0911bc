"""Admission of jobs: valid, under a free name, where the caller may, within limits; their dependencies."""

from __future__ import annotations

import asyncio
import base64
import logging
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from pai_scheduler.cluster.shared_folders import find_refused_folders
from pai_scheduler.core.dependencies import Dependency, never_satisfied, waits_for
from pai_scheduler.core.events import Submitted
from pai_scheduler.core.model import Job
from pai_scheduler.core.queries import Forecast, forecast, limit_errors, never_fits_reason
from pai_scheduler.engine.protocol import Engine
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.environment import storage_uris
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.job.validation import (
    InvalidJobError,
    SpecError,
    build_spec,
    checked_config,
    sound_part,
    validate,
    warnings,
)
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import (
    RequestError,
    conflict,
    forbidden,
    invalid_parameters,
    no_virtual_cluster,
    storage_full,
    too_many_jobs,
)
from pai_scheduler.storage.files import Files, Right, check
from pai_scheduler.storage.paths import Problem, StorageError, StorageNames
from pai_scheduler.store.records import JobLinks, SubmittedText

from .context import ServiceContext
from .health import DiskRoom
from .notifications import Notifications

# Permissions of a job at the storage, told beforehand: what it names and may not use, or is not there.


#: Seconds for which a storage is asked; one that is slower says nothing.
_PATIENCE = 2.0


@dataclass(frozen=True, slots=True)
class _Named:
    """A URI of a job, the field that has it, and where that stands; `fetched`: before the job starts."""

    field: str
    path: str
    uri: str
    right: Right
    fetched: bool


def find_refused(spec: JobSpec, user: Principal, names: StorageNames) -> Iterator[SpecError]:
    """Find the URIs that would be refused to the job's user. Nothing is asked of the storage.

    Another storage's URIs are the job's own business, except where we fetch what they name.
    """
    for named in _named(spec, user, names):
        if not (named.fetched or names.knows(named.uri)):
            continue
        try:
            check(user, names.resolve(named.uri), named.right)
        except StorageError as error:
            message = msg(
                "{field} {uri} cannot be used. {reason}",
                field=named.field,
                uri=named.uri,
                reason=error.message,
            )
            yield SpecError(named.path, message)


async def find_missing(spec: JobSpec, user: Principal, files: Files) -> list[SpecError]:
    """Find what would be fetched for the job and is not there now.

    A storage that does not answer soon is asked when the job starts.
    """
    found: list[SpecError] = []
    fetched = [named for named in _named(spec, user, files.names) if named.fetched]
    if not fetched:
        return found
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            for named in fetched:
                try:
                    await files.status(user, files.names.resolve(named.uri))
                except StorageError as error:
                    if error.problem is Problem.NOT_FOUND:
                        found.append(SpecError(named.path, _missing(named)))
    return found


def _missing(named: _Named) -> Message:
    if named.field == "codeDir":
        return msg(
            "codeDir {uri} is not there. The job fails when it starts, unless its code is put there before: "
            "`pai submit --code FOLDER` sends it along.",
            uri=named.uri,
        )
    return msg(
        "{field} {uri} is not there. The job fails when it starts, unless it is put there before.",
        field=named.field,
        uri=named.uri,
    )


def _named(spec: JobSpec, user: Principal, names: StorageNames) -> Iterator[_Named]:
    """List what a job names in the storage."""
    if not (spec.auth_file or spec.code_dir or spec.data_dir or spec.output_dir or spec.mounts):
        return
    uris = storage_uris(spec, user.name, names.default)
    listed = [
        _Named("authFile", "$.authFile", uris.auth_file, Right.READ, True),
        _Named("codeDir", "$.codeDir", uris.code_dir, Right.READ, True),
        _Named("dataDir", "$.dataDir", uris.data_dir, Right.READ, False),
        _Named("outputDir", "$.outputDir", uris.output_dir if spec.output_dir else "", Right.WRITE, False),
        *(
            _Named("extras.mounts", f"$.extras.mounts[{number}].source", uri, Right.READ, True)
            for number, uri in enumerate(uris.mounts)
        ),
    ]
    yield from (named for named in listed if named.uri)


# Dependencies of a job (`extras.after`): bound by name at its submission, shown with both their ends.


#: So many of those that wait for one job are shown with it: its page asks every two seconds.
_MOST_DEPENDENTS = 100


class JobDependencies:
    """Binds dependencies to jobs, and reads them back."""

    def __init__(self, context: ServiceContext) -> None:
        self._store, self._reader, self._writer = context.store, context.reader, context.writer

    async def bind(
        self, spec: JobSpec, owner: str, errors: list[SpecError], *, is_scheduled: bool = False
    ) -> list[Dependency]:
        """Find the jobs that a valid job of `owner` waits for; add to `errors` what cannot be.

        `is_scheduled`: a schedule submits it. Such a job may wait for none: all its runs would wait for the
        same one.
        """
        if not spec.after:
            return []
        if is_scheduled:
            text = msg("The job of a schedule cannot wait for another job. Remove “after” from its extras.")
            errors.append(SpecError("$.extras.after", text))
            return []
        ids = await self._reader.read(self._store.job_ids, owner, {one.job for one in spec.after})
        found = []
        for place, one in enumerate(spec.after):
            if one.job in ids:
                found.append(Dependency(ids[one.job], one.job, one.on))
                continue
            field = "" if isinstance(spec.extras["after"][place], str) else ".job"
            text = msg("User {user} has no job named {job} to wait for.", user=owner, job=one.job)
            errors.append(SpecError(f"$.extras.after[{place}]{field}", text))
        return found

    async def forecast(self, found: Forecast, after: Sequence[Dependency]) -> Forecast:
        """Return what submitting a job would do that waits for these; `found`: if it waited for none."""
        if not after or found.fits == "never":
            return found
        held = self._writer.core.jobs
        forgotten = {one.job_id for one in after if one.job_id not in held}
        ended = await self._reader.read(self._store.ended_states, forgotten) if forgotten else {}
        known = [one.after(ended[one.job_id]) if one.job_id in ended else one for one in after]
        for one in known:
            if one.holds is False:
                return _kept_from_starting(found, "never", never_satisfied(one, ended[one.job_id]))
        if all(one.holds for one in known):
            return found
        return _kept_from_starting(found, "later", waits_for(known))

    async def links(self, job: Job) -> JobLinks:
        """Return what a job waits or has waited for, and who does so for it."""
        return await self._reader.read(self._store.links, job.id, _MOST_DEPENDENTS)


def _kept_from_starting(found: Forecast, fits: str, reason: Message) -> Forecast:
    return replace(found, fits=fits, reason=reason, borrows=False, starts_within=None, starts_now_in=())


# Makes the ids of jobs: 80 bits, in letters and digits that stand in every kind of name.
#
# They rise with time, so the rows of new jobs stand side by side in the database's indexes however many
# there are: with ids by chance each submit would change pages of its own.

#: Bits of the time (ms since the epoch, enough until 2109) and of what chance adds, with which no two
#: schedulers, nor two lives of one, come to the same.
_TIME_BITS, _CHANCE_BITS = 42, 38
#: of what is added where another id was made in the same ms
_STEP_BITS = 16


class JobIds:
    """Makes ids of which each is higher than those before, in the order of their texts too."""

    def __init__(self) -> None:
        self._last = 0

    def new(self, now: int) -> str:
        """Make an id at `now` (ms since the epoch); where that is not later than before, it is higher too."""
        number = (now % (1 << _TIME_BITS)) << _CHANCE_BITS | secrets.randbits(_CHANCE_BITS)
        if number <= self._last:
            number = self._last + 1 + secrets.randbits(_STEP_BITS)
        self._last = number
        whole = number.to_bytes((_TIME_BITS + _CHANCE_BITS) // 8, "big")
        return base64.b32hexencode(whole).decode("ascii").lower()


# Which names of jobs may be taken, in memory: most submits need not ask the database then.
#
# A Bloom filter: of a free name it may say that it may be taken (then the database is asked, as for every
# name that is), of a taken one never that it is free. Names are never removed. Beyond ten million the
# database is asked more and more often, as it was for each before.

#: Bits (4 MiB), and how many of them stand for a name: of a million names, one in 6,000 others is asked for.
_BITS = 1 << 25
_PROBES = 4


class TakenNames:
    """Names by user. As long as `complete` is false, each may be taken."""

    def __init__(self) -> None:
        self._bits = bytearray(_BITS // 8)
        #: whether the names that the database had at the start are all here
        self.complete = False

    def add(self, user: str, name: str) -> None:
        """Know that a user's job has this name."""
        for byte, mask in _places(user, name):
            self._bits[byte] |= mask

    def add_all(self, names: Iterable[tuple[str, str]]) -> None:
        """Know the names of all jobs that there are; others may be added meanwhile."""
        for user, name in names:
            self.add(user, name)
        self.complete = True

    def may_be_taken(self, user: str, name: str) -> bool:
        """Return whether a user may have a job of this name; False: there is none."""
        return not self.complete or all(self._bits[byte] & mask for byte, mask in _places(user, name))


def _places(user: str, name: str) -> Iterator[tuple[int, int]]:
    # (seeded anew in each process, so that nobody chooses names that fall together)
    number = hash((user, name))
    step = (number >> 32) | 1
    for _ in range(_PROBES):
        place = number & (_BITS - 1)
        yield place >> 3, 1 << (place & 7)
        number += step


# Which jobs are taken: valid, under a name that is free, where the caller may, within the limits.

_log = logging.getLogger(__name__)

_FEW_ROLES = 8
#: characters of a user's name, as in JupyterHub's own database
_LONGEST_NAME = 255


@dataclass(frozen=True, slots=True)
class Accepted:
    """A job that was accepted durably: its name, and what its user had better know at once."""

    name: str
    warnings: Sequence[SpecError]


class Admission:
    """Takes jobs, each durably and under a name of its own; refusals are `errors.RequestError`.

    `room` says why there is no room for any more (None: nobody looks), `files` are those that jobs may name
    (None: there are none), `notifications` are the ways on which they are told of outside.
    """

    def __init__(
        self,
        context: ServiceContext,
        dependencies: JobDependencies,
        engine: Engine,
        room: DiskRoom | None,
        files: Files | None,
        notifications: Notifications,
    ) -> None:
        self._store, self._reader, self._writer = context.store, context.reader, context.writer
        self._cluster, self._now, self._dependencies = context.cluster, context.clock, dependencies
        self._engine, self._room, self._files, self._notifications = engine, room, files, notifications
        #: who submits what just now, and to which virtual cluster
        self._under_way: dict[tuple[str, str], str] = {}
        #: the names of all jobs, once they have been read
        self.taken = TakenNames()
        self._learning: asyncio.Task[None] | None = None
        self._last_order = 0
        self._ids = JobIds()

    async def start(self) -> None:
        """Go on counting where the store ends; StoreError where it cannot be read."""
        self._last_order = await asyncio.to_thread(self._store.last_order)
        # loads what validates, so that nobody's submit has to wait for it
        await asyncio.to_thread(validate, {})

    def learn_names(self) -> None:
        """Begin to read which names are taken: once what waits is in line, and its first job starts."""
        self._learning = asyncio.create_task(self._learn_names())

    async def close(self) -> None:
        """Do nothing more beside submits."""
        if self._learning is not None:
            self._learning.cancel()
            await asyncio.wait([self._learning])

    async def _learn_names(self) -> None:
        """Read which names are taken; until then, or where that fails, each submit asks the database."""
        try:
            await self._reader.read(lambda: self.taken.add_all(self._store.names()))
        except RequestError as error:
            _log.warning("the names of the jobs cannot be read, each submit asks for its own: %s", error)

    async def submit(
        self,
        principal: Principal,
        owner: str,
        config: object,
        text: SubmittedText | None = None,
        *,
        is_scheduled: bool = False,
    ) -> Accepted:
        """Accept a job durably. What it will be refused of storage and shared folders, as rights are now, is
        a warning: they may change before it starts. `text`: what it was read from, where that is kept too;
        `is_scheduled`: it is a run of a schedule.
        """
        if not principal.may_act_for(owner):
            raise forbidden(msg("Only an administrator may act for user {user}.", user=owner))
        if "\0" in owner or len(owner) > _LONGEST_NAME:
            raise invalid_parameters(msg("There can be no user with the name {name}.", name=owner))
        spec, kept, after = await self._check(principal, config, owner, is_scheduled=is_scheduled)
        if self._room is not None and (shortage := self._room.shortage()) is not None:
            raise storage_full(shortage)
        await self._accept(owner, spec, kept, text, after)
        # (an administrator who submits for somebody has not that user's groups at hand)
        told = warnings(config)
        if principal.name == owner:
            told += self._refused(principal, spec) or await self._missing(principal, spec)
        return Accepted(spec.name, told)

    async def check(
        self, principal: Principal, config: object, owner: str = "", *, is_scheduled: bool = False
    ) -> JobSpec:
        """Return what a job asks for; refuses one that is wrong, or that this caller may not submit.

        `owner`: whose job it will be; empty: the caller's own. `is_scheduled`: a schedule submits it.
        """
        spec, *_ = await self._check(principal, config, owner or principal.name, is_scheduled=is_scheduled)
        return spec

    async def _check(
        self, principal: Principal, config: object, owner: str, *, is_scheduled: bool
    ) -> tuple[JobSpec, Mapping[str, Any], list[Dependency]]:
        """Return what a job asks for, its JSON as it is kept, and the jobs that it waits for."""
        try:
            kept = await _parse(config)
        except InvalidJobError as error:
            raise invalid_parameters(_summary(error.errors), error.errors) from None
        spec = build_spec(kept)
        self._check_virtual_cluster(principal, spec.virtual_cluster)
        errors = await self._errors(spec, owner)
        after = await self._dependencies.bind(spec, owner, errors, is_scheduled=is_scheduled)
        if errors:
            raise invalid_parameters(_summary(errors), errors)
        return spec, kept, after

    async def validate(self, principal: Principal, config: object) -> Forecast:
        """Return what submitting this would do."""
        found = await self._forecast(principal, config)
        return replace(found, warnings=[*warnings(config), *found.warnings])

    async def _forecast(self, principal: Principal, config: object) -> Forecast:
        try:
            spec = build_spec(await _parse(config))
        except InvalidJobError as error:
            return self._wrong(principal, error.errors, await _sound_part(config, error.errors))
        try:
            self._check_virtual_cluster(principal, spec.virtual_cluster)
        except RequestError as refusal:
            # who writes a job sees it beside the field, like everything else that is wrong
            return self._wrong(principal, [SpecError("$.virtualCluster", refusal.message)], spec)
        errors = [*await self._errors(spec, principal.name), *self._refused(principal, spec)]
        after = await self._dependencies.bind(spec, principal.name, errors)
        if errors:
            return self._wrong(principal, errors, spec)
        clusters = self._cluster.virtual_clusters.values()
        others = [other.name for other in clusters if principal.may_use(other) and not other.stopped]
        found = forecast(self._writer.core, principal.name, spec, self._now(), others)
        found = await self._dependencies.forecast(found, after)
        return replace(found, warnings=await self._missing(principal, spec))

    def _wrong(self, principal: Principal, errors: Sequence[SpecError], spec: JobSpec | None) -> Forecast:
        """Answer with what is wrong with a job, and why what it is known to ask for never fits."""
        reason = None if spec is None else never_fits_reason(self._writer.core, principal.name, spec)
        return Forecast(errors, "never", reason)

    def _refused(self, principal: Principal, spec: JobSpec) -> list[SpecError]:
        """Find what a job asks for that its user may not have."""
        folders = self._cluster.definition.shared_folders
        refused = list(find_refused_folders(spec, folders, principal.name, principal.groups))
        if self._files is not None:
            refused += find_refused(spec, _without_administration(principal), self._files.names)
        return refused

    async def _missing(self, principal: Principal, spec: JobSpec) -> list[SpecError]:
        """Find what the job will need of the storage, and is not there yet."""
        if self._files is None:
            return []
        return await find_missing(spec, _without_administration(principal), self._files)

    async def _errors(self, spec: JobSpec, owner: str) -> list[SpecError]:
        """Find what is wrong with a valid job on this cluster."""
        errors = [*limit_errors(self._writer.core, spec), *self._notifications.errors(spec, owner)]
        if refusal := await self._engine.refuses_image(spec.image):
            errors.append(SpecError("$.image", refusal))
        return errors

    def jobs_in(self, virtual_cluster: str) -> int:
        """Count the jobs of a virtual cluster that have not ended, and those on their way to it."""
        under_way = sum(name == virtual_cluster for name in self._under_way.values())
        return under_way + sum(
            job.spec.virtual_cluster == virtual_cluster and not job.state.ended
            for job in self._writer.core.jobs.values()
        )

    def _jobs_of(self, user: str) -> int:
        """Count a user's jobs that have not ended, and those on their way."""
        return len(self._writer.core.unended(user)) + sum(name == user for name, _ in self._under_way)

    async def _accept(
        self,
        owner: str,
        spec: JobSpec,
        config: Mapping[str, Any],
        text: SubmittedText | None,
        after: Sequence[Dependency],
    ) -> None:
        key = (owner, spec.name)
        if key in self._under_way:
            raise _taken(spec.name)
        self._under_way[key] = spec.virtual_cluster
        durable: asyncio.Future[None] | None = None
        try:
            if self.taken.may_be_taken(*key) and await self._reader.read(self._store.job, *key) is not None:
                raise _taken(spec.name)
            known = self._cluster.virtual_clusters
            if spec.virtual_cluster not in known or spec.virtual_cluster == self._cluster.leaving:
                # deleted since it was found
                raise no_virtual_cluster(spec.virtual_cluster, sorted(known))
            most = self._cluster.definition.jobs_per_user
            if self._jobs_of(owner) > most:
                raise too_many_jobs(owner, most)
            self._last_order += 1
            now = self._now()
            event = Submitted(now, self._ids.new(now), owner, spec, self._last_order, tuple(after))
            self.taken.add(*key)
            durable = self._writer.begin(event, config, text)
        finally:
            if durable is None:
                del self._under_way[key]
        # a caller who goes away does not undo what is being written, nor free the name before it is
        durable.add_done_callback(lambda _: self._under_way.pop(key))
        await asyncio.shield(durable)

    def _check_virtual_cluster(self, principal: Principal, name: str) -> None:
        clusters = self._cluster.virtual_clusters
        cluster = clusters.get(name)
        if cluster is None:
            raise no_virtual_cluster(name, sorted(clusters))
        if not principal.may_use(cluster):
            known = ", ".join(other.name for other in clusters.values() if principal.may_use(other))
            raise forbidden(
                msg(
                    "Virtual cluster {name} is not open to you. Open to you are: {known}.",
                    name=name,
                    known=known or "–",
                )
            )
        if cluster.stopped:
            raise forbidden(
                msg(
                    "Virtual cluster {name} is stopped: it takes no jobs until an administrator starts it.",
                    name=name,
                )
            )


def _taken(name: str) -> RequestError:
    return conflict(msg("There is a job named {name} already. Choose another name.", name=name))


def _without_administration(principal: Principal) -> Principal:
    """Return who a job is to the storage: it has its user's rights, never an administrator's."""
    return replace(principal, admin=False) if principal.admin else principal


async def _parse(config: object) -> Mapping[str, Any]:
    """Check a job and return its JSON as it is kept; a large one, which takes up to a second, beside
    everybody else's requests.
    """
    if _takes_long(config):
        return await asyncio.to_thread(checked_config, config)
    return checked_config(config)


async def _sound_part(config: object, errors: Sequence[SpecError]) -> JobSpec | None:
    if _takes_long(config):
        return await asyncio.to_thread(sound_part, config, errors)
    return sound_part(config, errors)


def _takes_long(config: object) -> bool:
    """Return whether a job JSON may take more than a few ms to validate: many ports, large `extras`."""
    if not isinstance(config, Mapping):
        return False
    roles = config.get("taskRoles")
    return bool(config.get("extras")) or (isinstance(roles, list) and len(roles) > _FEW_ROLES)


def _summary(errors: Sequence[SpecError]) -> Message:
    first = errors[0]
    if len(errors) == 1:
        return msg("The job is not valid: {path}: {error}", path=first.path, error=first.message)
    return msg(
        "The job is not valid, {count} errors. The first: {path}: {error}",
        count=len(errors),
        path=first.path,
        error=first.message,
    )
