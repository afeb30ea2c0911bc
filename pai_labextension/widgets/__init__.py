"""Jobs and files in a notebook: `JobForm` writes and submits one, `JobMonitor` shows what it does,
`JobTable` lists the jobs, `ClusterView` shows what is free, `FileExplorer` shows the cluster's files."""

from .cluster_view import ClusterView as ClusterView
from .explorer.file_explorer import FileExplorer as FileExplorer
from .form import unique_name as unique_name
from .job_form import JobForm as JobForm
from .job_form import NotSubmittedError as NotSubmittedError
from .job_monitor import JobMonitor as JobMonitor
from .job_table import JobTable as JobTable

__all__ = [
    "ClusterView",
    "FileExplorer",
    "JobForm",
    "JobMonitor",
    "JobTable",
    "NotSubmittedError",
    "unique_name",
]
