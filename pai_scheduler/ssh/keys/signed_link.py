"""Links by which the key of one job is downloaded without a token, for some minutes."""

from __future__ import annotations

import hmac
from collections.abc import Callable

#: Seconds for which a link is good.
SECONDS = 600


def sign_link(job_id: str, now: int, sign: Callable[[str], str]) -> dict[str, str]:
    """Return the parameters of a link made `now` (ms since the epoch)."""
    expires = str(now // 1000 + SECONDS)
    return {"expires": expires, "signature": sign(_text(job_id, expires))}


def is_good(job_id: str, expires: str, signature: str, now: int, sign: Callable[[str], str]) -> bool:
    """Return whether a link is for this job, ours, and not too old."""
    if not (expires.isascii() and expires.isdecimal()):
        return False
    genuine = sign(_text(job_id, expires)).encode()
    if not hmac.compare_digest(genuine, signature.encode("utf-8", "surrogatepass")):
        return False
    return now // 1000 <= int(expires)


def _text(job_id: str, expires: str) -> str:
    return f"key {job_id} {expires}"
