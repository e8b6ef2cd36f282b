"""Equal to our peers on the same inputs: recorded pairs, so that no peer is needed; `studies/peers.py` asks them."""

import pytest

from tests.peers.ours import OURS, SAMPLES, is_equal, read_cases

MODELS = {"speechmos_dnsmos", "speechmos_plcmos", "distillmos"}
PEERS = [pytest.param(peer, marks=[pytest.mark.models, pytest.mark.long] if peer in MODELS else []) for peer in OURS]
DIFFERENT = {"torchmetrics_text": 2, "torchmetrics_srmr": 12}
"""Cases in which we differ: it counts repeated spaces, and in its fast mode frames behind the end."""


@pytest.mark.parametrize("peer", PEERS)
def test_the_recorded_values_of_a_peer_are_ours(peer: str) -> None:
    cases = read_cases(peer)
    if "sound" in cases[0]["input"] and not SAMPLES.is_dir():
        cases = [case for case in cases if " " in case["input"]["sound"]]
    for case in cases:
        ours = OURS[peer](**case["input"])
        assert is_equal(peer, ours, case["ours"] if "ours" in case else case["theirs"]), (case, ours)


@pytest.mark.parametrize("peer", OURS)
def test_where_we_differ_is_known(peer: str) -> None:
    """A case that differs has both values, and docs/validity.md says who is right."""
    differing = [case for case in read_cases(peer) if "ours" in case]
    assert len(differing) == DIFFERENT.get(peer, 0)
    assert not any(is_equal(peer, case["ours"], case["theirs"]) for case in differing)
