"""What users read when an image cannot be had: nothing that a registry could choose."""

from __future__ import annotations

import aiodocker
import pytest

from pai_scheduler.engine.docker.images import refusal
from pai_scheduler.engine.protocol import EndCause

IMAGE = "registry.example.org/x:1"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            'error parsing HTTP 418 response body: invalid character: "SECRET"',
            "Its registry answers with HTTP status 418.",
        ),
        ("received unexpected HTTP status: 500 SECRET", "Its registry answers with HTTP status 500."),
        ("unexpected status from HEAD request to http://r/SECRET: 502 Bad", "HTTP status 502."),
        ("toomanyrequests: SECRET", "Its registry takes no more requests for now (HTTP status 429)."),
        ('Get "https://r/v2/": dial tcp: lookup r: no such host', "The name of its registry leads nowhere."),
        (
            'Get "https://r/v2/": x509: certificate of SECRET',
            "Its registry does not prove with a certificate",
        ),
        ('Get "https://r/v2/": dial tcp 1.2.3.4:443: connection refused', "Its registry does not answer."),
        ("write /var/lib/docker/tmp/x: no space left on device", "The disk of the machine is full."),
        ("SECRET", "The scheduler's log has the reason."),
    ],
)
def test_a_pull_that_may_go_better_later_is_told_in_our_own_words(
    said: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    error = refusal(IMAGE, None, aiodocker.DockerError(500, said))
    assert error.cause is EndCause.LAUNCH_FAILED
    assert str(error.reason).startswith(f"The image {IMAGE} could not be pulled. ")
    assert told in str(error.reason)
    assert "SECRET" not in str(error.reason)
    assert said in caplog.text


@pytest.mark.parametrize("said", ["manifest unknown: SECRET", "unauthorized: SECRET", "denied: SECRET"])
def test_what_only_the_user_can_change_is_told_without_the_registrys_words(said: str) -> None:
    error = refusal(IMAGE, None, aiodocker.DockerError(500, said))
    assert error.cause is EndCause.REFUSED
    assert "SECRET" not in str(error.reason)
