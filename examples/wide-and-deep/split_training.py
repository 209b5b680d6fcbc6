"""Split learning of a wide-and-deep model between a party with features and parties with labels.

The server holds all features and the lower layers: the wide part's weights, the embeddings, and the
deep part up to the cut layer. Every label party holds the labels of its own records and upper
layers of its own. Two kinds of messages pass, and nothing else (Sun et al. 2022a, section 2.1):

- ``Activations``, from the server to one label party: which of its records, and their cut layer.
- ``Gradients``, back: the derivatives of the party's loss by those activations.

A label party learns the cut layer of its own records, which may tell much about their features. The
server learns the gradients, **and every training label from them**: the wide part is added to the
logit, so its derivative is (p - y) / batch, negative exactly for the positives
(``labels_in_gradients``). Other cut layers leak less plainly, and leak (O. Li et al. 2022, "Label
leakage and protection in two-party split learning"). Nothing here protects training labels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from criteo import CATEGORIES, Features
from numpy.random import Generator
from numpy.typing import NDArray

try:
    import torch
    from torch import nn
except ImportError:
    raise ImportError(
        "training needs torch, which is not installed: pip install 'tacit[training]'"
    ) from None

FLOAT_BYTES = 4
RATE = 2e-3
"""The step size of Adam, on all sides."""
DECAY = 1e-4
"""What keeps the weights of rare categories small."""


@dataclass(frozen=True)
class Layers:
    """The sizes of the model.

    Parameters
    ----------
    buckets : rows of every category's table.
    embedding : numbers an embedding.
    hidden : units of the server's hidden layer.
    cut : units of the deep part's cut layer.
    top : units of a label party's hidden layer.
    """

    buckets: int = 1000
    embedding: int = 8
    hidden: int = 64
    cut: int = 16
    top: int = 8


@dataclass(frozen=True, eq=False)
class Activations:
    """What a label party receives.

    Parameters
    ----------
    records : int64, shape (B,): places in the party's own list of records.
    values : float32 tensor, shape (B, 1 + cut): the wide part's sum, then the deep part's cut.
    """

    records: NDArray[np.int64]
    values: torch.Tensor

    @property
    def size(self) -> int:
        """Bytes."""
        return int(self.records.nbytes + FLOAT_BYTES * self.values.numel())


@dataclass(frozen=True, eq=False)
class Gradients:
    """What the server receives back.

    Parameters
    ----------
    values : float32 tensor, shape (B, 1 + cut): of the party's mean loss by the activations.
    """

    values: torch.Tensor

    @property
    def size(self) -> int:
        """Bytes."""
        return int(FLOAT_BYTES * self.values.numel())


class FeatureParty:
    """The server: features, and the layers below the cut.

    Parameters
    ----------
    features : of all records.
    owned : for every label party, which of these records are its own, int64, in its own order.
    layers : the sizes of the model.
    """

    def __init__(
        self, features: Features, owned: tuple[NDArray[np.int64], ...], layers: Layers
    ) -> None:
        self._numbers = torch.from_numpy(features.numbers)
        self._places = torch.from_numpy(features.places)
        self._owned = owned
        rows, width = CATEGORIES * layers.buckets, features.numbers.shape[1]
        self._wide = nn.EmbeddingBag(rows, 1, mode="sum")
        self._wide_numbers = nn.Linear(width, 1)
        self._embedding = nn.Embedding(rows, layers.embedding)
        self._deep = nn.Sequential(
            nn.Linear(CATEGORIES * layers.embedding + width, layers.hidden),
            nn.ReLU(),
            nn.Linear(layers.hidden, layers.cut),
            nn.ReLU(),
        )
        for table in (self._wide, self._embedding):
            nn.init.normal_(table.weight, std=0.01)
        parts = (self._wide, self._wide_numbers, self._embedding, self._deep)
        weights = chain.from_iterable(part.parameters() for part in parts)
        self._optimiser = torch.optim.Adam(weights, lr=RATE, weight_decay=DECAY)
        self._pending: Any = None

    def forward(self, party: int, records: NDArray[np.int64]) -> Activations:
        """The cut layer of some records of a party, of which gradients are expected."""
        self._pending = self._cut(party, records)
        return Activations(records, self._pending.detach().clone())

    def backward(self, gradients: Gradients) -> None:
        """Go on where a label party ended, and take one step."""
        self._optimiser.zero_grad()
        self._pending.backward(gradients.values)
        self._optimiser.step()

    def infer(self, party: int, records: NDArray[np.int64]) -> Activations:
        """The cut layer of records that are only to be scored."""
        with torch.no_grad():
            return Activations(records, self._cut(party, records))

    def _cut(self, party: int, records: NDArray[np.int64]) -> torch.Tensor:
        rows = torch.from_numpy(self._owned[party][records])
        indices, numbers = self._places[rows], self._numbers[rows]
        wide = self._wide(indices) + self._wide_numbers(numbers)
        read = torch.cat([self._embedding(indices).flatten(1), numbers], dim=1)
        return torch.cat([wide, self._deep(read)], dim=1)


class LabelParty:
    """An advertiser: the labels of its records, and layers above the cut of its own.

    Parameters
    ----------
    labels : int8, shape (n,).
    layers : the sizes of the model.
    """

    def __init__(self, labels: NDArray[np.int8], layers: Layers) -> None:
        self._labels = torch.from_numpy(labels.astype(np.float32))
        self._top = nn.Sequential(
            nn.Linear(layers.cut, layers.top), nn.ReLU(), nn.Linear(layers.top, 1)
        )
        self._optimiser = torch.optim.Adam(self._top.parameters(), lr=RATE)

    def learn(self, activations: Activations) -> Gradients:
        """Finish the forward pass, take one step, and return the cut layer's gradients."""
        values = activations.values.requires_grad_()
        loss = nn.functional.binary_cross_entropy_with_logits(
            self._logits(values), self._labels[torch.from_numpy(activations.records)]
        )
        self._optimiser.zero_grad()
        loss.backward()
        self._optimiser.step()
        return Gradients(values.grad)

    def score(self, activations: Activations) -> NDArray[np.float64]:
        """The predicted chances of clicks, shape (B,)."""
        with torch.no_grad():
            chances = torch.sigmoid(self._logits(activations.values).double())
        return np.asarray(chances.numpy())

    def _logits(self, values: torch.Tensor) -> torch.Tensor:
        return values[:, 0] + self._top(values[:, 1:]).squeeze(1)


def start_from(seed: int) -> None:
    """Let weights begin at values that follow from a seed, on one thread: the layers are small."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)


def labels_in_gradients(gradients: Gradients) -> NDArray[np.int8]:
    """The labels as the server reads them from gradients alone, shape (B,)."""
    return np.asarray((gradients.values[:, 0] < 0).numpy(), dtype=np.int8)


def batches(
    sizes: tuple[int, ...], batch: int, random: Generator
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """One epoch: every record once, in batches of one party's records, parties mixed.

    Yields
    ------
    tuple : the party, and places in its list of records.
    """
    drawn = [
        (party, part)
        for party, size in enumerate(sizes)
        for part in np.array_split(random.permutation(size), max(1, round(size / batch)))
    ]
    for index in random.permutation(len(drawn)):
        yield drawn[index]
