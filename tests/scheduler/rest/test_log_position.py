"""What a reader of a log knows of its place in it: with times, across what was removed, however it is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.rest.log_position import STAMP_LENGTH, LogPosition

STAMP = b"2026-01-02T03:04:05.678Z "


@pytest.mark.parametrize("timestamps", [False, True])
@given(data=st.data())
def test_the_place_is_that_of_the_logs_own_bytes(timestamps: bool, data: st.DataObject) -> None:
    whole = b"".join(data.draw(st.lists(st.sampled_from([b"a", b"bc", b"\n"]), min_size=1, max_size=30)))
    start = data.draw(st.integers(0, 5))
    gap = data.draw(st.none() | st.tuples(st.integers(0, 20), st.integers(1, 50)))
    headers = {"x-log-offset": str(start)}
    notice = b"\n[left out]\n"
    answer, places, line_begins = bytearray(), [start], True
    place = start
    if gap is not None:
        headers |= {
            "x-log-removed": f"{start + gap[0]}-{start + gap[0] + gap[1]}",
            "x-log-notice": str(len(notice)),
        }
    for number, byte in enumerate(whole):
        if gap is not None and number == gap[0]:
            place += gap[1]
            answer += notice
            places += [place] * len(notice)
            line_begins = True
        if line_begins and timestamps:
            answer += STAMP
            places += [place] * STAMP_LENGTH
        answer.append(byte)
        place += 1
        places.append(place)
        line_begins = byte == ord("\n")
    position = LogPosition(headers, timestamps=timestamps)
    at = 0
    while at < len(answer):
        step = data.draw(st.integers(1, 40))
        part = position.count(bytes(answer[at : at + step]))
        at = min(len(answer), at + step)
        assert part.next_offset == places[at]


def test_an_answer_that_begins_in_a_removed_part_begins_with_the_line_about_it() -> None:
    headers = {"x-log-offset": "500", "x-log-removed": "100-500", "x-log-notice": "11"}
    position = LogPosition(headers, timestamps=False)
    assert position.count(b"[left out]\n").next_offset == 500
    assert position.count(b"more").next_offset == 504
