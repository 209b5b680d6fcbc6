"""Client steps travel to other processes as what they are there."""

from __future__ import annotations

import pickle

from tacit.protocol.registry import kind_of, protocol_names


def test_a_step_is_the_same_in_another_process() -> None:
    steps = [
        step
        for name in protocol_names()
        for protocol in kind_of(name).law_cases().values()
        for step in protocol.steps
    ]
    assert len(steps) > 20
    for step in steps:
        assert pickle.loads(pickle.dumps(step)) is step  # noqa: S301 -- made in this line
