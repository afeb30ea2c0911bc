"""A sentence that was kept or sent is the same one in every language."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.i18n import Message, counted, msg
from pai_scheduler.job.message_documents import message_document, read_message

VALUES = st.none() | st.booleans() | st.integers() | st.text()
PLAIN = st.builds(msg, st.text(st.characters(exclude_characters="{}")))


@given(
    st.recursive(
        PLAIN,
        lambda inner: st.builds(
            Message,
            st.just("{first} {second}"),
            st.fixed_dictionaries({"first": VALUES | inner, "second": VALUES}),
        ),
    )
)
def test_a_message_comes_back_as_it_was_with_those_within_it(message: Message) -> None:
    document = json.loads(json.dumps(message_document(message)))
    assert read_message(document) == message


def test_the_form_for_many_is_kept() -> None:
    message = counted("{count} task waits.", "{count} tasks wait.", count=3)
    assert str(read_message(message_document(message))) == "3 tasks wait."
