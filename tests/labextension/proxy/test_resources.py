"""Which paths, methods and parameters are the API's, and how they are written when they go on."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from pai_labextension.proxy.handlers import (
    MethodError,
    NoResourceError,
    ParameterError,
    RequestTarget,
    target,
)
from pai_scheduler.api.operations import operations_of
from pai_scheduler.api.routes import ROUTES

JOB = "user/alice/jobs/train-1.0~b"
TASK = f"{JOB}/taskRoles/worker/tasks/12"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "user"),
        ("GET", "user/alice"),
        ("GET", "user/user"),
        ("GET", "authn/info"),
        ("GET", "openapi.yaml"),
        ("GET", "jobs"),
        ("POST", "jobs"),
        ("POST", "user/alice/jobs"),
        ("PUT", JOB),
        ("DELETE", JOB),
        ("GET", f"{JOB}/config"),
        ("GET", f"{JOB}/ssh"),
        ("GET", f"{JOB}/ssh/key"),
        ("GET", "user/alice/ssh-keys"),
        ("POST", "user/alice/ssh-keys"),
        ("GET", "user/alice/jobs/ssh-keys/attempts"),
        ("GET", f"{JOB}/attempts"),
        ("GET", f"{JOB}/events"),
        ("PUT", f"{JOB}/executionType"),
        ("GET", f"{TASK}/logs/all"),
        ("GET", f"{TASK}/metrics"),
        ("POST", "validate"),
        ("GET", "events"),
        ("GET", "nodes"),
        ("GET", "cluster/usage"),
        ("GET", "virtual-clusters"),
        ("PUT", "virtual-clusters/vision"),
        ("PUT", "virtual-clusters/vision/status"),
    ],
)
def test_what_the_contract_has_passes_as_it_is(method, path):
    assert target(method, path, "") == RequestTarget(f"api/v1/{path}", "")


#: a value for each part of an address that varies
VALUES = {
    "user": "alice",
    "job": "train",
    "role": "worker",
    "index": "0",
    "port": "8888",
    "stream": "all",
    "virtualCluster": "vision",
    "node": "node-a",
    "maintenance": "disks",
    "schedule": "nightly",
    "fingerprint": "SHA256:" + "a" * 43,
}
#: what a page needs no answer of: passwords, the notebook server's own address, and that of a task's port;
#: and what administrators do about machines, at the Hub
KEPT_BACK = {
    # nothing in JupyterLab waits for it
    "GET /changes",
    # the notebook server itself asks
    "GET /schedule-times",
    "PUT /nodes/{node}",
    # (the machines themselves tell of it)
    "GET /maintenance",
    "PUT /maintenance/{maintenance}",
    "DELETE /maintenance/{maintenance}",
    "GET /healthz",
    "GET ",
    "POST /token",
    "GET /user/{user}/jobs/{job}/taskRoles/{role}/tasks/{index}/ports/{port}",
}
#: what a page has no use for: a link that is good without a token
UNUSED = {"expires", "signature"}


def test_every_call_that_the_api_declares_passes_with_its_parameters_or_is_kept_back_on_purpose():
    declared = [one for handler in {handler for _, handler in ROUTES} for one in operations_of(handler)]
    kept_back = set()
    for one in declared:
        parameters = {item.name for item in one.parameters if item.place == "query"}
        query = "&".join(f"{name}=1" for name in parameters - UNUSED)
        try:
            target(one.method, one.path.format(**VALUES).removeprefix("/"), query)
        except NoResourceError:
            kept_back.add(f"{one.method} {one.path}")
        for name in parameters & UNUSED:
            with pytest.raises(ParameterError):
                target(one.method, one.path.format(**VALUES).removeprefix("/"), f"{name}=1")
    assert kept_back == KEPT_BACK


def test_names_are_encoded_anew():
    assert target("GET", "user/ä b@c/jobs/x", "").path == "api/v1/user/%C3%A4%20b%40c/jobs/x"


def test_a_fingerprint_is_one_name_whatever_is_in_it():
    fingerprint = "SHA256:" + "aB3/+" * 8 + "aB3"
    found = target("DELETE", f"user/alice/ssh-keys/{fingerprint}", "")
    assert found.path == f"api/v1/user/alice/ssh-keys/{quote(fingerprint, safe='')}"
    for wrong in ("SHA256:short", f"{fingerprint}/x", "../jobs/a", f"MD5{fingerprint}", ""):
        with pytest.raises(NoResourceError):
            target("DELETE", f"user/alice/ssh-keys/{wrong}", "")


def test_parameters_of_jupyters_own_stay_here():
    query = "token=secret&username=a%20b&_xsrf=1&no_track_activity=1&1700000000000"
    assert target("GET", "jobs", query).query == "username=a+b"


def test_what_a_task_uses_can_be_asked_from_a_time_on():
    assert target("GET", f"{TASK}/metrics", "attempt=1&after=1700000000000").query == (
        "attempt=1&after=1700000000000"
    )


def test_a_log_can_be_asked_from_a_time_on_and_attempts_without_their_tasks():
    query = "attempt=1&since=1700000000000&limit=100&timestamps=1"
    assert target("GET", f"{TASK}/logs/all", query).query == query
    assert target("GET", f"{JOB}/attempts", "attempt=1&tasks=0").query == "attempt=1&tasks=0"


def test_an_answer_that_is_followed_is_told_from_one_that_ends():
    assert target("GET", f"{TASK}/logs/stdout", "follow=1&offset=-100").follows
    assert target("GET", f"{JOB}/events", "follow=True").follows
    assert not target("GET", f"{TASK}/logs/stdout", "follow=0").follows
    assert not target("GET", f"{TASK}/logs/stdout", "").follows


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a\\b", "%2e%2e", "a\nb", "a\x7f", "a?b", "a#b", "x" * 256]
)
def test_a_name_that_could_lead_elsewhere_is_no_name(name):
    with pytest.raises(NoResourceError):
        target("GET", f"user/alice/jobs/{name}", "")


@pytest.mark.parametrize(
    "path",
    [
        "token",
        "healthz",
        f"{TASK}/terminal",
        f"{TASK}/logs/core",
        "user/a/jobs/b/taskRoles/r/tasks/x/metrics",
    ],
)
def test_the_rest_of_the_scheduler_is_not_there(path):
    with pytest.raises(NoResourceError):
        target("GET", path, "")


def test_a_wrong_method_is_told_the_right_ones():
    with pytest.raises(MethodError, match=r"^GET, POST$"):
        target("DELETE", "jobs", "")


def test_an_unknown_parameter_is_named():
    with pytest.raises(ParameterError, match=r"^size$"):
        target("GET", "jobs", "size=1")
