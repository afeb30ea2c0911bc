"""Jobs and files in a notebook: `JobForm` writes and submits one, `JobMonitor` shows what it does,
`FileExplorer` shows the cluster's files."""

from .explorer.file_explorer import FileExplorer as FileExplorer
from .form import unique_name as unique_name
from .job_form import JobForm as JobForm
from .job_monitor import JobMonitor as JobMonitor

__all__ = ["FileExplorer", "JobForm", "JobMonitor", "unique_name"]
