"""Dependencies of a job (`extras.after`): bound by name at its submission, shown with both their ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pai_scheduler.core.dependencies import Dependency, never_satisfied, waits_for
from pai_scheduler.core.model import Job
from pai_scheduler.core.queries import Forecast
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.job.validation import SpecError
from pai_scheduler.store.records import JobLinks

from .context import ServiceContext

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
