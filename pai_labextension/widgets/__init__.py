"""Jobs and files in a notebook: `JobForm` writes and submits one, `JobMonitor` shows what it does,
`JobTable` lists the jobs, `ClusterView` shows what is free, `FileExplorer` shows the cluster's files."""

from .base import ConsoleWidget as ConsoleWidget
from .job_form import JobForm as JobForm
from .job_form import NotSubmittedError as NotSubmittedError
from .job_form import unique_name as unique_name
from .job_monitor import JobEnd as JobEnd
from .job_monitor import JobMonitor as JobMonitor
from .job_monitor import MonitorClosedError as MonitorClosedError
from .tables import ClusterView as ClusterView
from .tables import FileExplorer as FileExplorer
from .tables import JobTable as JobTable

__all__ = [
    "ClusterView",
    "ConsoleWidget",
    "FileExplorer",
    "JobEnd",
    "JobForm",
    "JobMonitor",
    "JobTable",
    "MonitorClosedError",
    "NotSubmittedError",
    "unique_name",
]
