"""Sentences are English until somebody reads them, and then in the reader's language."""

from __future__ import annotations

import pytest

from pai_scheduler.i18n import Message, choose_locale, counted, msg


def test_a_message_is_printed_in_english() -> None:
    assert str(msg("{field} must not be empty.", field="image")) == "image must not be empty."


def test_a_message_is_given_in_chinese_with_its_values() -> None:
    assert msg("{field} must not be empty.", field="image").in_locale("zh_CN") == "image 不能为空。"


def test_messages_within_a_message_are_put_into_the_same_language() -> None:
    message = msg(
        "{field} must be {expected}, but is {actual}.", field="a", expected=msg("a list"), actual="null"
    )
    assert "a list" not in message.in_locale("zh_CN")
    assert "a list" in message.in_locale("en")


def test_what_has_no_translation_stays_english() -> None:
    assert (
        Message("Nobody translated {this}.", {"this": "that"}).in_locale("zh_CN") == "Nobody translated that."
    )


@pytest.mark.parametrize(
    ("count", "english", "chinese"),
    [
        (0, "0 CPUs", "0 个 CPU"),
        (1, "1 CPU", "1 个 CPU"),
        (2, "2 CPUs", "2 个 CPU"),
        (1.5, "1.5 CPUs", "1.5 个 CPU"),
    ],
)
def test_a_number_decides_the_form_of_its_sentence(count: float, english: str, chinese: str) -> None:
    message = counted("{count} CPU", "{count} CPUs", count=count)
    assert (str(message), message.in_locale("zh_CN")) == (english, chinese)


def test_what_is_counted_and_not_translated_stays_english() -> None:
    message = Message("{count} of nothing", {"count": 2}, plural="{count} of nothings")
    assert message.in_locale("zh_CN") == "2 of nothings"


def test_braces_in_values_are_no_templates() -> None:
    assert str(msg("{field} must not be empty.", field="{x}")) == "{x} must not be empty."


@pytest.mark.parametrize(
    ("wanted", "locale"),
    [
        ("", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh_CN"),
        ("zh", "zh_CN"),
        ("zh-TW", "zh_CN"),
        ("zh_CN.UTF-8", "zh_CN"),
        ("en-US,zh;q=0.5", "en"),
        ("fr;q=1, zh;q=0.9", "zh_CN"),
        ("en;q=0.1, zh;q=0.9", "zh_CN"),
        ("C.UTF-8", "en"),
        ("*", "en"),
        ("zh;q=nonsense", "en"),
    ],
)
def test_the_locale_follows_what_the_reader_prefers(wanted: str, locale: str) -> None:
    assert choose_locale(wanted) == locale
