"""The files that JupyterLab uploads for a schedule: they go with it, unless somebody needs them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pai_scheduler.job.spec import JobSpec
from pai_scheduler.storage.files import home
from pai_scheduler.storage.paths import StoragePath

#: Where they are, and how they are called: a name, and what makes it new (`client/storage/code.py`).
_CODE = re.compile(r"\$PAI_DEFAULT_FS_URI/\$PAI_USER_NAME/schedules/([A-Za-z0-9._~-]+_[0-9a-f]{8})/?")


def uploaded_folder(user: str, config: Mapping[str, Any]) -> StoragePath | None:
    """Return where the files of a schedule's job are that were uploaded for it alone; None: there are none.

    Only JupyterLab writes `extras.run` beside such a folder: what people have put somewhere themselves stays.
    """
    extras, code = config.get("extras"), config.get("codeDir")
    if not (isinstance(extras, Mapping) and "run" in extras and isinstance(code, str)):
        return None
    found = _CODE.fullmatch(code)
    return StoragePath((*home(user).parts, "schedules", found[1])) if found else None


def is_needed(folder: StoragePath, jobs: Iterable[JobSpec], schedules: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a job that has not ended, or another schedule, has anything from a folder."""
    name = folder.parts[-1]
    for spec in jobs:
        places = (spec.code_dir, spec.data_dir, *(mount.source for mount in spec.mounts))
        if any(name in place for place in places):
            return True
    return any(name in str(config) for config in schedules)
