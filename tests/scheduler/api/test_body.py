"""Bodies that cannot be read are refused with the place; those of old clients are read."""

from __future__ import annotations

import httpx
import pytest


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty"),
        (b"   \n", "empty"),
        (b'{\n  "jobName": }', "Line 2, column 14"),
        (b'{"a": 1,,}', "Line 1, column 9"),
        (b'{"a": 1} x', "Line 1, column 10"),
        (b'{"a": "\xff"}', "not UTF-8 text (byte 7)"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "too many digits"),
        (b'{"a": NaN}', "NaN"),
        (b'{"jobName": "x", // why\n  /* not ended', "Line 2, column 3"),
        (b"[1 /* too long for comments */" + b" " * 256 * 1024 + b"]", "Line 1, column 4"),
    ],
)
async def test_what_is_no_json_is_refused_with_the_place(
    http: httpx.AsyncClient, body: bytes, words: str
) -> None:
    for path in ("/jobs", "/validate"):
        answer = await http.post(path, content=body, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParametersError")
        assert words in answer.json()["message"]
        assert answer.json()["errors"][0]["path"] == "$"


@pytest.mark.parametrize("body", [b"[]", b"null", b'"text"', b"5"])
async def test_a_job_that_is_no_object_is_refused(http: httpx.AsyncClient, body: bytes) -> None:
    answer = await http.post("/jobs", content=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParametersError")
    checked = await http.post("/validate", content=body)
    assert checked.json()["errors"][0]["path"] == "$"


async def test_a_compressed_body_is_not_guessed_at(http: httpx.AsyncClient) -> None:
    answer = await http.post("/jobs", content=b"\x1f\x8b", headers={"Content-Encoding": "gzip"})
    assert (answer.status_code, answer.json()["code"]) == (415, "UnsupportedMediaTypeError")


@pytest.mark.parametrize("media_type", ["application/json", "application/x-www-form-urlencoded"])
async def test_a_job_may_have_comments_and_trailing_commas(http: httpx.AsyncClient, media_type: str) -> None:
    name = f"from-a-file-{len(media_type)}"
    text = f"""// as it stands in a file
    {{"jobName": "{name}", "image": "local/any", /* none, yet */
      "taskRoles": [{{"name": "main", "command": "echo ,]",}},],
    }}"""
    headers = {"Content-Type": media_type}
    checked = await http.post("/validate", content=text, headers=headers)
    assert checked.json()["errors"] == []
    answer = await http.post("/jobs", content=text, headers=headers)
    assert answer.status_code == 202, answer.text
    config = (await http.get(f"/user/alice/jobs/{name}/config")).json()
    assert config["taskRoles"] == [{"name": "main", "command": "echo ,]"}]
    # the text is kept as it was
    kept = await http.get(f"/user/alice/jobs/{name}/config?as=submitted", headers={"Accept": "text/yaml"})
    assert (kept.text, kept.headers["Content-Type"]) == (text, "application/json; charset=UTF-8")
    schedule = f'{{"cron": "0 0 * * *", "timeZone": "UTC", "job": {text.partition(chr(10))[2]},}}'
    made = await http.put(f"/user/alice/schedules/{name}", content=schedule, headers=headers)
    assert made.status_code == 200, made.text


async def test_of_a_job_without_comments_its_json_is_what_was_submitted(http: httpx.AsyncClient) -> None:
    job = {"jobName": "plain", "image": "x", "taskRoles": [{"name": "main", "command": "true"}]}
    assert (await http.post("/jobs", json=job)).status_code == 202
    submitted = await http.get("/user/alice/jobs/plain/config?as=submitted")
    assert (submitted.json(), submitted.headers["Content-Type"]) == (job, "application/json; charset=UTF-8")
    for path, status, code in (
        ("plain/config?as=yaml", 400, "InvalidParametersError"),
        ("none/config?as=submitted", 404, "NoJobConfigError"),
    ):
        refused = await http.get(f"/user/alice/jobs/{path}")
        assert (refused.status_code, refused.json()["code"]) == (status, code)


async def test_nested_form_keys_make_a_job(http: httpx.AsyncClient) -> None:
    form = {
        "jobName": "from-a-form",
        "image": "local/any",
        "taskRoles[0][name]": "main",
        "taskRoles[0][taskNumber]": "2",
        "taskRoles[0][command]": "echo a b&c",
        "taskRoles[0][minFailedTaskCount]": "",
    }
    answer = await http.post("/jobs", data=form)
    assert answer.status_code == 202, answer.text
    config = (await http.get("/user/alice/jobs/from-a-form/config")).json()
    assert config["taskRoles"] == [
        {"name": "main", "taskNumber": 2, "command": "echo a b&c", "minFailedTaskCount": None}
    ]


async def test_a_form_may_have_thousands_of_fields(http: httpx.AsyncClient) -> None:
    form = {"jobName": "large-form", "image": "local/any"}
    for role in range(500):
        form |= {f"taskRoles[{role}][name]": f"r{role}", f"taskRoles[{role}][command]": "true"}
        form |= {f"taskRoles[{role}][memoryMB]": "100", f"taskRoles[{role}][cpuNumber]": "1"}
    answer = await http.post("/jobs", data=form)
    assert answer.status_code == 202, answer.text
    config = (await http.get("/user/alice/jobs/large-form/config")).json()
    assert config["taskRoles"][499] == {"name": "r499", "command": "true", "memoryMB": 100, "cpuNumber": 1}
    await http.delete("/user/alice/jobs/large-form")


async def test_a_form_of_too_many_fields_is_told_how_many_may_be(http: httpx.AsyncClient) -> None:
    form = "&".join(f"jobEnvs[a{number}]=1" for number in range(100_001))
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await http.post("/jobs", content=form, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["message"] == "The body has more than 100000 fields."


async def test_a_form_without_sense_is_refused(http: httpx.AsyncClient) -> None:
    answer = await http.post("/jobs", data={"taskRoles[0][name": "x"})
    assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParametersError")
    assert answer.json()["errors"]


async def test_json_that_curl_calls_a_form_is_read_as_json(http: httpx.AsyncClient) -> None:
    answer = await http.post(
        "/validate",
        content=b'{"jobName": "a/b"}',
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert {error["path"] for error in answer.json()["errors"]} == {"$.jobName", "$.image", "$.taskRoles"}
