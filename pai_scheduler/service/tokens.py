"""What a job proves itself with to the storage: a token of its own, worth nothing once it has ended."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path

from pai_scheduler.data_folder.secret_file import kept_secret

_PREFIX = "paijob-"


class JobTokens:
    """Makes and recognises the tokens of jobs. They are not kept: each follows from the job's id."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    @classmethod
    def in_folder(cls, folder: Path) -> JobTokens:
        """Use the secret kept in a folder (made at first): tasks run on over a restart, with their tokens."""
        return cls(kept_secret(folder / "job-tokens.key"))

    def token(self, job_id: str) -> str:
        """Return a job's token."""
        return f"{_PREFIX}{job_id}-{self._proof(job_id)}"

    def job_of(self, token: str) -> str | None:
        """Return whose token this is, by the job's id; None where it is none of ours."""
        prefix, _, rest = token.partition("-")
        job_id, _, proof = rest.rpartition("-")
        genuine = hmac.compare_digest(self._proof(job_id).encode(), proof.encode("utf-8", "surrogatepass"))
        return job_id if f"{prefix}-" == _PREFIX and genuine else None

    def _proof(self, job_id: str) -> str:
        return hmac.digest(self._secret, job_id.encode("utf-8", "surrogatepass"), hashlib.sha256).hex()
