"""How far a pull is, from lines as a Docker Engine writes them."""

from __future__ import annotations

import pytest

from pai_scheduler.engine.docker.images import Layers, size_text


def told(*lines: tuple[str, str, int, int]) -> Layers:
    """Return the layers after lines of status, layer, and what is done of how much."""
    layers = Layers()
    for status, layer, current, total in lines:
        detail = {"current": current, "total": total} if total else {}
        layers.take({"status": status, "id": layer, "progressDetail": detail})
    return layers


def test_half_of_the_way_is_the_download_and_half_the_unpacking() -> None:
    layers = told(("Downloading", "a", 100, 100), ("Downloading", "b", 50, 300))
    assert (layers.percent, layers.downloaded, layers.size) == (18, 150, 400)
    layers.take({"status": "Pull complete", "id": "a", "progressDetail": {}})
    assert (layers.percent, layers.downloaded) == (31, 150)


def test_a_layer_whose_download_has_not_begun_keeps_the_size_open_and_counts_as_the_others() -> None:
    announced = (("Pulling fs layer", "a", 0, 0), ("Pulling fs layer", "b", 0, 0))
    layers = told(*announced, ("Pull complete", "c", 0, 0), ("Downloading", "a", 100, 100))
    assert (layers.is_size_known, layers.size) == (False, 100)
    assert layers.percent == 100 * 100 * 2 // (2 * 100 * 3)
    layers.take({"status": "Downloading", "id": "b", "progressDetail": {"current": 1, "total": 900}})
    assert (layers.is_size_known, layers.size) == (True, 1000)


def test_what_was_here_before_does_not_count() -> None:
    layers = told(("Pulling fs layer", "a", 0, 0), ("Already exists", "a", 0, 0), ("Downloading", "b", 5, 10))
    assert (layers.is_size_known, layers.size, layers.percent) == (True, 10, 25)


def test_a_line_that_is_about_no_layer_changes_nothing() -> None:
    layers = Layers()
    layers.take({"status": "Pulling from library/debian", "id": "13"})
    layers.take({"status": "Digest: sha256:0123"})
    assert (layers.size, layers.percent, layers.is_size_known) == (0, 0, True)


def test_seconds_of_unpacking_are_no_more_than_the_layer() -> None:
    layers = told(("Downloading", "a", 3, 3))
    layers.take({"status": "Extracting", "id": "a", "progressDetail": {"current": 20, "units": "s"}})
    assert layers.percent == 100


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (2_100_000_000, "2.1 GB"), (43_210_000, "43 MB"), (999_999, "1.0 MB")],
)
def test_a_size_is_written_as_people_read_it(size: int, text: str) -> None:
    assert size_text(size) == text
