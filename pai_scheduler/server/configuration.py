"""Reads what an administrator has written: the cluster file, and where the storage is."""

from __future__ import annotations

import argparse
import getpass
from pathlib import Path

import yaml

from pai_scheduler.cluster.config_fields import DefinitionError
from pai_scheduler.cluster.definition import Definition, parse_definition
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.i18n import msg
from pai_scheduler.storage.factory import choose_storage
from pai_scheduler.storage.paths import StorageError
from pai_scheduler.storage.protocol import Storage

from .yaml_problems import UNREADABLE, explain

#: The folder of users' files in the data folder, where no storage is named.
STORAGE_FOLDER = "storage"


def read_cluster(path: Path) -> Definition:
    """Read a cluster file; StartError with file and place where it is wrong."""
    try:
        return parse_definition(yaml.safe_load(path.read_text(encoding="utf-8")))
    except UNREADABLE as error:
        reason: object = explain(error)
    except DefinitionError as error:
        reason = msg("{path}: {reason}", path=error.path, reason=error.message)
    raise StartError(msg("The cluster file {file} cannot be used: {reason}", file=path, reason=reason))


def make_storage(options: argparse.Namespace, data_dir: Path) -> Storage:
    """Return the storage that the options name, which is not started; StartError."""
    try:
        return choose_storage(
            options.storage,
            data_dir / STORAGE_FOLDER,
            account=storage_account(options),
            kerberos=options.storage_kerberos,
        )
    except StorageError as error:
        raise StartError(msg("The storage cannot be used: {reason}", reason=error.message)) from error


def storage_account(options: argparse.Namespace) -> str:
    """Return as whom an HDFS knows the scheduler."""
    return options.storage_user or getpass.getuser()
