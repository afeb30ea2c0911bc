"""What a request is told when the database does not do its part: by what is wrong with it."""

from __future__ import annotations

from pai_scheduler.i18n import msg
from pai_scheduler.rest.errors import RequestError, storage_damaged, storage_full, storage_unavailable

from .database import StoreError, Trouble


def not_written(error: StoreError) -> RequestError:
    """Return the error that says that nothing was accepted."""
    match error.trouble:
        case Trouble.FULL:
            message = msg(
                "The scheduler has no room left in its database ({error}). Nothing was accepted; try again "
                "later.",
                error=error.reason,
            )
            return storage_full(message)
        case Trouble.DAMAGED:
            return _damaged(error)
        case Trouble.UNAVAILABLE:
            message = msg(
                "The scheduler cannot reach its database, or may not write to it ({error}). Nothing was "
                "accepted; what runs goes on. Try again later.",
                error=error.reason,
            )
            return storage_unavailable(message)


def not_read(error: StoreError) -> RequestError:
    """Return the error that says that nothing can be told."""
    if error.trouble is Trouble.DAMAGED:
        return _damaged(error)
    message = msg("The scheduler cannot read its database ({error}). What runs goes on.", error=error.reason)
    return storage_unavailable(message)


def _damaged(error: StoreError) -> RequestError:
    message = msg(
        "The scheduler's database is damaged ({error}), and this needs what is lost. What runs goes on. Ask "
        "an administrator to restore a backup.",
        error=error.reason,
    )
    return storage_damaged(message)
