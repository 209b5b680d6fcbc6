"""A gate for results of tasks, in the shape of a filter of NVIDIA FLARE.

It was written after the source of NVFLARE 2.8.1 and tested with objects of that shape, not with
NVFLARE itself, of which it imports only ``nvflare.apis.filter.Filter``, where that is installed. A
filter that raises makes NVFLARE's client send an error code in the place of the result. It is no
``DXOFilter``: those pass results that hold no data exchange object.
"""

from __future__ import annotations

from typing import Any

from tacit.running.gate import Constants, Gate, holding, is_finite, refuse

try:
    from nvflare.apis.filter import Filter
except ImportError:
    Filter = object

TASK_DATA = "__task_data__"
"""The property of a context that holds what the server sent with a task."""
CONTENT_TYPE, DXO = "__content_type__", "DXO"
METRICS, MODELS, FIRST_METRICS = "METRICS", ("WEIGHTS", "WEIGHT_DIFF"), "initial_metrics"
MOST_ROUNDS, ROUNDS = 2**20, ("current_round", "num_rounds", "contribution_round")
"""Headers by which a server counts its rounds, which it sent itself, and a bound on them."""


class GateFilter(Filter):  # type: ignore[misc]  # NVFLARE's types are not checked
    """Lets out only figures that the site's ledger has debited, constants, and perhaps the model.

    Parameters
    ----------
    party : the party's file.
    constants : as ``Gate`` takes them, for metrics and for what describes them, as
        ``{"NUM_STEPS_CURRENT_ROUND": 1}``.
    model : whether weights may leave, which are not private, under names of weights that the
        server sent with a task before.
    """

    def __init__(self, party: str, constants: Constants = None, model: bool = False) -> None:
        super().__init__()
        self._gate, self._model = Gate(party, constants), model
        self._sent = set[Any]()

    def process(self, shareable: Any, fl_ctx: Any) -> Any:
        """The result of a task, made new of what may leave.

        Raises
        ------
        HeldError : with a fixed sentence, for anything else; the site's log names what was held.
        """
        with holding():
            sent = ((fl_ctx and fl_ctx.get_prop(TASK_DATA)) or {}).get(DXO) or {}
            self._sent |= {*sent["data"]} if sent.get("kind") in MODELS else set()
            return self._passed(shareable)

    def _passed(self, result: Any) -> Any:
        kind, data, meta = (result[DXO][key] for key in ("kind", "data", "meta"))
        first = {key: self._gate.passed(meta[key]) for key in meta if key == FIRST_METRICS}
        rest = self._gate.passed({key: meta[key] for key in meta if key != FIRST_METRICS})
        if kind == METRICS:
            data = self._gate.passed(data)
        else:
            fits = self._model and kind in MODELS
            wrong = (name for name in data if name not in self._sent or not is_finite(data[name]))
            refuse(wrong if fits else [kind])
        made = type(result)()
        made[DXO] = {"kind": kind, "data": data, "meta": first | rest}
        made.set_header(CONTENT_TYPE, DXO)
        for name in ROUNDS:
            if type(number := result.get_header(name)) is int and abs(number) < MOST_ROUNDS:
                made.set_header(name, number)
        return made
