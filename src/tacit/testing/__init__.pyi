"""What a protocol's tests import, and where it is."""

from .checks import (
    binormal_clients,
    check_batches,
    check_bytes,
    check_chunks,
    check_errors,
    check_exactness,
    check_neighbours,
    check_order,
    check_replicates,
    check_spending,
    check_system_noise,
    check_wrong_noise,
    conversation_of,
)
from .foundations import Audit, RunError, audit, simulate
from .laws import LAWS, Law, federations, laws_for
from .recording import Loss, Recorder, Rescaled, loss_between, neighbours
from .rehearsal import Fault, Keys, Refusal, Rehearsal, rehearse
from .room import Room

__all__ = [
    "LAWS",
    "Audit",
    "Fault",
    "Keys",
    "Law",
    "Loss",
    "Recorder",
    "Refusal",
    "Rehearsal",
    "Rescaled",
    "Room",
    "RunError",
    "audit",
    "binormal_clients",
    "check_batches",
    "check_bytes",
    "check_chunks",
    "check_errors",
    "check_exactness",
    "check_neighbours",
    "check_order",
    "check_replicates",
    "check_spending",
    "check_system_noise",
    "check_wrong_noise",
    "conversation_of",
    "federations",
    "laws_for",
    "loss_between",
    "neighbours",
    "rehearse",
    "simulate",
]
