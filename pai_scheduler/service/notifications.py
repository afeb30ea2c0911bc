"""Which ways out an administrator has opened, and what jobs may ask of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pai_scheduler.core.instructions import MAIL, WEBHOOK
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.job.validation import SpecError

from .channel import Channel


@dataclass(frozen=True, slots=True)
class Notifications:
    """The ways out by their names (`webhook`, `mail`); what is not there is not opened."""

    channels: Mapping[str, Channel] = field(default_factory=dict)

    def errors(self, spec: JobSpec, user: str) -> Iterator[SpecError]:
        """Find what a user's job asks for that it cannot have."""
        wanted = spec.notify
        if wanted is None:
            return
        if wanted.webhook and (refusal := self._refusal(WEBHOOK, user, wanted.webhook)) is not None:
            yield SpecError("$.extras.notify.webhook", refusal)
        if wanted.mail:
            target = wanted.mail if isinstance(wanted.mail, str) else ""
            if (refusal := self._refusal(MAIL, user, target)) is not None:
                yield SpecError("$.extras.notify.mail", refusal)

    def _refusal(self, name: str, user: str, target: str) -> Message | None:
        channel = self.channels.get(name)
        if channel is not None:
            return channel.refusal(user, target)
        if name == WEBHOOK:
            return msg("This scheduler calls no webhooks. Leave it out, or ask your administrator for it.")
        return msg("This scheduler sends no mail. Leave it out, or ask your administrator for it.")
