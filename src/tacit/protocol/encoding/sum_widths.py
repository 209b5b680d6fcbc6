"""In how many bits the numbers of a step travel in a secure sum, from its query alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tacit.crypto.secure_sum.masking import modulus_for
from tacit.crypto.secure_sum.messages import HEADER, SIGNATURE_BYTES
from tacit.crypto.secure_sum.packing import Packing, Run
from tacit.protocol.conversation import MAX_RECORDS, Layout, Query


def layout_of(query: Query) -> Layout:
    """The names and shapes of the numbers that a query sums.

    Raises
    ------
    TypeError : for a step that does not say what it sums.
    """
    if query.step.sums is None:
        raise TypeError(
            f"step {query.step.name} does not declare what it sums, so it cannot be summed"
        )
    return query.step.sums(query)


def runs_of(query: Query) -> tuple[Run, ...]:
    """The widths of a step's fields, in the order of its layout; none where it bounds no sum.

    Raises
    ------
    TypeError : for a step that bounds other fields than it sums.
    """
    layout = layout_of(query)
    if query.step.bounds is None:
        return ()
    bounds = query.step.bounds(query)
    if bounds.keys() != layout.keys():
        raise TypeError(f"a sum of {sorted(layout)} was agreed, and bounds of {sorted(bounds)}")
    lengths = {name: int(np.prod(shape)) for name, shape in layout.items()}
    return tuple(
        Run(length, modulus_for(1, max(bounds[name], 1)))
        for name, length in lengths.items()
        if length
    )


def masked_size(query: Query) -> int | None:
    """The bytes of a client's masked numbers as a message; None where the step bounds no sum.

    Where no number of records was agreed, there is room for ``MAX_RECORDS`` of a client.
    """
    if query.step.bounds is None:
        return None
    bounded = replace(query, most_records=query.most_records or MAX_RECORDS)
    return HEADER.size + Packing(runs_of(bounded)).size + SIGNATURE_BYTES
