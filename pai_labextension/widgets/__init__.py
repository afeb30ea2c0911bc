"""Jobs in a notebook: `JobForm` writes and submits one, `JobMonitor` shows what it does."""

from .form import unique_name as unique_name
from .job_form import JobForm as JobForm
from .job_monitor import JobMonitor as JobMonitor

__all__ = ["JobForm", "JobMonitor", "unique_name"]
