"""How sound that arrives in chunks would have played, reckoned by hand."""

import pytest

from podeval.systems.servers.streaming import StreamedChunk, play, summarise_playback


def test_sound_that_comes_faster_than_it_plays_never_stalls() -> None:
    heard = play([StreamedChunk(0.2, 1.0), StreamedChunk(0.4, 1.0), StreamedChunk(0.6, 1.0)])
    assert heard.time_to_first_audio == 0.2
    assert heard.underrun == 0
    assert heard.continuous == 1
    assert heard.cadence == pytest.approx(0.2)


def test_a_stall_lasts_until_the_next_chunk_is_there() -> None:
    # Plays 0.1 to 0.6, waits to 1.0, plays to 1.5, waits to 1.6: 0.5 s of 1.5 s of sound were waited for.
    heard = play([StreamedChunk(0.1, 0.5), StreamedChunk(1.0, 0.5), StreamedChunk(1.6, 0.5)])
    assert heard.underrun == pytest.approx(0.4)
    assert heard.stalled == pytest.approx(0.5)
    assert heard.continuous == pytest.approx(1.5 / 2.0)


def test_what_is_buffered_pays_for_a_late_chunk() -> None:
    assert play([StreamedChunk(0.0, 2.0), StreamedChunk(0.1, 2.0), StreamedChunk(3.9, 1.0)]).underrun == 0


def test_a_listener_waits_for_the_first_response_and_hears_the_worst_of_all() -> None:
    summary = summarise_playback(
        [play([StreamedChunk(0.3, 1.0)]), play([StreamedChunk(0.9, 1.0), StreamedChunk(2.4, 1.0)])], [0.4, 2.5]
    )
    assert [(piece["wall_seconds"], piece["audio_seconds"]) for piece in summary["pieces"]] == [(0.4, 1), (2.5, 2)]
    assert summary["time_to_first_audio"] == 0.3
    assert summary["underrun"] == pytest.approx(0.5)
    assert summary["continuous_playback"] == pytest.approx(3 / 3.5, abs=1e-4)
    assert [piece["chunks"] for piece in summary["pieces"]] == [1, 2]
