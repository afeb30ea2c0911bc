"""What a job names in the storage and its user may not read or write: told by rights, before it starts."""

from __future__ import annotations

from collections.abc import Iterator

from pai_scheduler.job.environment import storage_uris
from pai_scheduler.job.messages import msg
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.job.validate import SpecError
from pai_scheduler.security.principal import Principal
from pai_scheduler.storage.errors import StorageError
from pai_scheduler.storage.names import StorageNames
from pai_scheduler.storage.trees import Right, check


def find_refused(spec: JobSpec, user: Principal, names: StorageNames) -> Iterator[SpecError]:
    """Find the URIs that would be refused to the job's user. Nothing is asked of the storage.

    Another storage's URIs are the job's own business, except where we fetch what they name.
    """
    if not (spec.auth_file or spec.code_dir or spec.data_dir or spec.output_dir or spec.mounts):
        return
    uris = storage_uris(spec, user.name, names.default)
    named = [
        ("authFile", "$.authFile", uris.auth_file, Right.READ, True),
        ("codeDir", "$.codeDir", uris.code_dir, Right.READ, True),
        ("dataDir", "$.dataDir", uris.data_dir, Right.READ, False),
        ("outputDir", "$.outputDir", uris.output_dir if spec.output_dir else "", Right.WRITE, False),
        *(
            ("extras.mounts", f"$.extras.mounts[{number}].source", uri, Right.READ, True)
            for number, uri in enumerate(uris.mounts)
        ),
    ]
    for field, path, uri, right, fetched in named:
        if not uri or not (fetched or names.knows(uri)):
            continue
        try:
            check(user, names.resolve(uri), right)
        except StorageError as error:
            yield SpecError(
                path,
                msg("{field} {uri} cannot be used. {reason}", field=field, uri=uri, reason=error.message),
            )
