"""Messages as JSON documents: a sentence is kept or sent before its reader's language is known."""

from __future__ import annotations

from typing import Any

from pai_scheduler.i18n import Message


def message_document(message: Message) -> list[Any]:
    """Return a message as lists, objects, texts and numbers only; messages may be within it."""
    values = {
        key: {"message": message_document(value)} if isinstance(value, Message) else value
        for key, value in message.values.items()
    }
    plural = [] if message.plural is None else [message.plural]
    return [message.package, message.template, values, *plural]


def read_message(document: list[Any]) -> Message:
    """Return the message of a document that `message_document` made."""
    package, template, values, *plural = document
    return Message(
        template,
        {
            key: read_message(value["message"]) if isinstance(value, dict) else value
            for key, value in values.items()
        },
        package,
        plural[0] if plural else None,
    )
