"""A hospital's side: it trains, it scores, and its gate answers tacit's messages.

The node's configuration names the party's file (``party``), as for ``tacit join``. Beside the file
of scored records that it names, ``train.npz`` and ``test.npz`` hold the hospital's own records.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from numpy.typing import NDArray

from hospital_training.model import Floats, scores_of, trained
from tacit.flower import GatedApp
from tacit.running.session.party_file import PartyFile

app = GatedApp(constants={"num-examples": 1}, model="arrays")


@app.train()
def train(message: Message, context: Context) -> Message:
    """A few steps on the hospital's training records.

    What leaves: the new weights, which are not private. FedAvg wants a number of records to weigh
    them by; every hospital says 1, and the gate would hold another number.
    """
    features, labels = records_of(context, "train")
    weights = trained(weights_in(message), features, labels.astype(np.float64))
    content = {
        "arrays": ArrayRecord([weights]),
        "metrics": MetricRecord({"num-examples": 1}),
    }
    return Message(RecordDict(content), reply_to=message)


@app.evaluate()
def score(message: Message, context: Context) -> Message:
    """Score the test records with the new model, into the file that tacit's messages are about.

    What leaves: that it is done.
    """
    features, labels = records_of(context, "test")
    scores = scores_of(weights_in(message), features)
    rows = np.column_stack([scores, labels])
    np.savetxt(records_file(context), rows, ["%.17g", "%d"], ",", header="score,label", comments="")
    content = {"metrics": MetricRecord({"num-examples": 1})}
    return Message(RecordDict(content), reply_to=message)


def records_file(context: Context) -> Path:
    """The file of scored records that the party's file names."""
    return PartyFile.read(str(context.node_config["party"])).records


def records_of(context: Context, name: str) -> tuple[Floats, NDArray[np.int8]]:
    """The hospital's own features, shape (n, FEATURES), and labels, shape (n,)."""
    with np.load(records_file(context).with_name(f"{name}.npz")) as stored:
        return stored["features"], stored["labels"]


def weights_in(message: Message) -> Floats:
    """The model that the server sent."""
    arrays: list[Floats] = message.content["arrays"].to_numpy_ndarrays()
    return arrays[0]
