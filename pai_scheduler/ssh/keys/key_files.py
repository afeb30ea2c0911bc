"""What the files of a job's key are called, wherever they are kept."""

from __future__ import annotations

from pai_scheduler.job.spec import CONTAINER, folder_name


def key_name(user: str, job: str) -> str:
    """Name the file of a job's private key; the public one's ends in `.pub`."""
    return folder_name(f"{user}~{job}")


def job_folder(user: str, job: str) -> tuple[str, ...]:
    """Return the parts of the path of a job's folder in the storage, which its user reads."""
    return (CONTAINER, folder_name(user), key_name(user, job))


def key_folder(user: str, job: str) -> tuple[str, ...]:
    """Return the parts of the path of the folder of a job's keys in the storage."""
    return (*job_folder(user, job), "ssh", "keyFiles")
