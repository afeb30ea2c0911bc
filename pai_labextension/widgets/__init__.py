"""Jobs in a notebook: `JobForm` writes and submits one, `JobMonitor` shows what it does."""

from .job_form import JobForm as JobForm
from .job_monitor import JobMonitor as JobMonitor

__all__ = ["JobForm", "JobMonitor"]
