"""The end of a job as a value."""

from __future__ import annotations

from pai_labextension.widgets.job_end import JobEnd, end_of
from pai_scheduler.testing.scheduler import job_of


def test_an_end_is_the_name_of_the_state_and_knows_why() -> None:
    job = job_of("demo")
    job.state, job.exit_code, job.diagnostics = "FAILED", 3, "It failed."
    end = end_of(job.detail("alice"))
    assert end == "FAILED"
    assert (end.exit_code, end.reason) == (3, "It failed.")
    assert repr(end) == "JobEnd('FAILED', exit_code=3, reason='It failed.')"
    assert repr(JobEnd("SUCCEEDED")) == "JobEnd('SUCCEEDED')"
