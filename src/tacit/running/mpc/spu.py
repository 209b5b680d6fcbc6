"""SPU's runtime at one party: a link to the others, inputs as shares, outputs as shares.

A party never opens anything: ``SharedRun.shares`` gives its own share of a program's output, words
modulo 2**64 that add up over the parties to the result. Two parties compute by CHEETAH (Huang et
al. 2022), which needs no dealer of random numbers; SPU's protocol SEMI2K is never used, since its
default dealer is one of the parties. Three parties compute by ABY3 (Mohassel and Rindal 2018), with
an honest majority.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.crypto.secure_sum import masking
from tacit.extras import extra
from tacit.protocol.mpc import Function, MPCError, SharedRun, Words

FRACTION_BITS = 18
PROTOCOLS = {2: "CHEETAH", 3: "ABY3"}
"""SPU's protocol by the number of parties."""
AT_ONCE, SILENT = "YACL_Softspoken", "YACL_Ferret"
MANY_ITEMS = 200_000
"""Above it silent transfers pay."""
STORAGE = {2: "cheetah.AShr<FM64>", 3: "aby3.AShr<FM64>"}
"""How a party's part of a secret 64-bit integer is stored: additive shares, one or two of three."""


def library(name: str) -> Any:
    """A module of SPU or JAX, imported where it is used.

    Raises
    ------
    ImportError : with the install command, without them.
    """
    need = "a computation between clients needs SPU, which runs on Python 3.11"
    return extra(name, need, "'tacit[two-party]'")


def runtime_config(parties: int, items: int) -> Any:
    """SPU's configuration for this number of parties: the 64-bit ring, 18 fraction bits.

    Of SPU's settings only its JSON form reaches the kind of oblivious transfers. Silent transfers
    (Ferret, Yang et al. 2020) take seconds to begin and few bytes each; SoftSpoken (Roy 2022)
    begins at once.
    """
    settings = {
        "protocol": PROTOCOLS[parties],
        "field": "FM64",
        "fxp_fraction_bits": FRACTION_BITS,
        "cheetah_2pc_config": {"ot_kind": SILENT if items > MANY_ITEMS else AT_ONCE},
    }
    config = library("spu.libspu").RuntimeConfig()
    if not config.ParseFromJsonString(json.dumps(settings)):
        raise MPCError("SPU refuses its configuration")
    return config


def link(
    session: str, rank: int, sockets: Sequence[str], timeout: float, setup_timeout: float
) -> Any:
    """SPU's link between the parties, over the sockets of their tunnels.

    Parameters
    ----------
    session : the session's name.
    rank : the party's index among ``sockets``; it listens on its own.
    sockets : the address of every party as this one reaches it.
    timeout : seconds to wait for every message.
    setup_timeout : seconds to wait for a connection.

    Raises
    ------
    MPCError : when the others do not come.
    """
    spu = library("spu.libspu")
    description = spu.link.Desc()
    description.id = session
    description.recv_timeout_ms = max(int(1000 * timeout), 1)
    milliseconds = max(int(1000 * setup_timeout), 1)
    description.http_timeout_ms = milliseconds
    description.connect_retry_interval_ms = 50
    description.connect_retry_times = max(milliseconds // 50, 1)
    for index, address in enumerate(sockets):
        description.add_party(f"party {index}", address)
    try:
        return spu.link.create_brpc(description, rank)
    except RuntimeError as error:
        raise MPCError(f"the parties did not connect: {first_line(error)}") from None


def load_engine() -> None:
    """Import what computing on shares needs, which takes seconds: before others wait for it."""
    for name in ("spu.libspu", "spu.api", "spu.utils.frontend", "jax.numpy"):
        library(name)


def first_line(error: Exception) -> str:
    """What a C++ library says, without its stack trace."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and line not in {"what:", "stacktrace:"}]
    return said[0] if said else type(error).__name__


class SPURun(SharedRun):
    """One party's side of functions on shares, by SPU.

    Parameters
    ----------
    context : the link.
    items : how many items two parties transfer obliviously.
    """

    def __init__(self, context: Any, items: int = 0) -> None:
        self._context = context
        self.parties = int(context.world_size)
        self.rank = int(context.rank)
        self._spu = library("spu.libspu")
        self._runtime = library("spu.api").Runtime(context, runtime_config(self.parties, items))
        self._programs: dict[tuple[Any, ...], Any] = {}

    @property
    def arrays(self) -> Any:
        """JAX's array functions, which SPU compiles."""
        return library("jax.numpy")

    def shares(
        self,
        name: tuple[Any, ...],
        function: Function,
        value: NDArray[np.int64],
        shapes: Sequence[tuple[int, ...]],
    ) -> Words:
        """The share of a function of one input of every party; see ``SharedRun.shares``."""
        with stopping():
            inputs = [
                self._input(index, shape, value if index == self.rank else None)
                for index, shape in enumerate(shapes)
            ]
        return self.evaluated(name, function, inputs)

    def evaluated(
        self, name: tuple[Any, ...], function: Function, inputs: Sequence[Sequence[Words]]
    ) -> Words:
        """The share of a function of shared inputs; see ``SharedRun.evaluated``.

        A fresh sharing of zero is added, so that shares reveal only their sum.
        """
        shapes = [summands[0].shape for summands in inputs]
        key = (*name, *shapes)
        if key not in self._programs:
            self._programs[key] = compiled(function, shapes)
        executable = self._programs[key]
        variables = (*executable.input_names, *executable.output_names)
        with stopping():
            for variable, summands in zip(executable.input_names, inputs, strict=True):
                self._runtime.set_var(variable, self._share(summands))
            self._runtime.run(executable)
            output = self._local_words(self._runtime.get_var(executable.output_names[0]))
            for variable in variables:
                self._runtime.del_var(variable)
            return output + self._share_of_zero(output.shape)

    def _share_of_zero(self, shape: tuple[int, ...]) -> Words:
        """A share of zero: the words of this party's seed, less those of the previous party's."""
        seed = os.urandom(masking.SEED_BYTES)
        self._context.send((self.rank + 1) % self.parties, seed)
        previous_seed = bytes(self._context.recv((self.rank - 1) % self.parties))
        if len(previous_seed) != masking.SEED_BYTES:
            raise MPCError(f"a party sent {len(previous_seed)} bytes of a seed")
        return masking.words_of(seed, shape) - masking.words_of(previous_seed, shape)

    def _input(
        self, owner: int, shape: tuple[int, ...], value: NDArray[np.int64] | None
    ) -> list[Words]:
        """This party's summands of one party's input, the owner's own among them as its words."""
        message = bytes(self._context.recv(owner)) if value is None else self._handed_out(value)
        known = masking.known_summands(self.rank, self.parties)
        sizes = [8 * math.prod(shape) if k == owner else masking.SEED_BYTES for k in known]
        if len(message) != sum(sizes):
            raise MPCError(f"a party sent {len(message)} bytes of an input of shape {shape}")
        parts = message[: sizes[0]], message[sizes[0] :]
        return [
            np.frombuffer(part, dtype="<u8").reshape(shape)
            if k == owner
            else masking.words_of(part, shape)
            for k, part in zip(known, parts, strict=False)
        ]

    def _handed_out(self, value: NDArray[np.int64]) -> bytes:
        """Send the others their parts of this party's input, and give its own.

        It draws a seed for every summand but its own, which is the value less the others.
        """
        parts = [os.urandom(masking.SEED_BYTES) for _ in range(self.parties)]
        own = np.ascontiguousarray(value).view(np.uint64)
        others = [index for index in range(self.parties) if index != self.rank]
        for index in others:
            own = own - masking.words_of(parts[index], value.shape)
        parts[self.rank] = own.astype("<u8").tobytes()
        messages = [
            b"".join(parts[k] for k in masking.known_summands(index, self.parties))
            for index in range(self.parties)
        ]
        for index in others:
            self._context.send(index, messages[index])
        return messages[self.rank]

    def _share(self, summands: Sequence[Words]) -> Any:
        meta = self._spu.ValueMeta()
        meta.data_type = self._spu.DataType.DT_I64
        meta.visibility = self._spu.Visibility.VIS_SECRET
        meta.storage_type = STORAGE[self.parties]
        meta.shape.dims = list(summands[0].shape)
        content = np.stack(list(summands), axis=-1).astype("<u8").tobytes()
        chunk = self._spu.ValueChunk()
        chunk.total_bytes, chunk.chunk_offset, chunk.content = len(content), 0, content
        share = self._spu.Share()
        share.meta = meta.SerializeToString()
        share.share_chunks = [chunk.SerializeToString()]
        return share

    def _local_words(self, share: Any) -> Words:
        """The first summand that this party holds of a result."""
        meta = self._spu.ValueMeta()
        meta.ParseFromString(share.meta)
        if meta.storage_type != STORAGE[self.parties]:
            raise MPCError(f"the result is stored as {meta.storage_type}, not as additive shares")
        content = b""
        for raw in share.share_chunks:
            chunk = self._spu.ValueChunk()
            chunk.ParseFromString(raw)
            content += chunk.content
        words = np.frombuffer(content, dtype="<u8")
        return words.reshape(*meta.shape.dims, self.parties - 1)[..., 0].copy()


@contextmanager
def stopping() -> Iterator[None]:
    """SPU's errors in this block, as those of a computation that cannot go on."""
    try:
        yield
    except MPCError:
        raise
    except RuntimeError as error:
        raise MPCError(f"the computation stopped: {first_line(error)}") from None


def compiled(function: Function, shapes: list[tuple[int, ...]]) -> Any:
    """A function of secret 64-bit inputs of these shapes, ready to run."""
    jax = library("jax")
    spu, frontend = library("spu.libspu"), library("spu.utils.frontend")
    jax.config.update("jax_enable_x64", True)
    inputs = [np.zeros(shape, dtype=np.int64) for shape in shapes]
    executable, _ = frontend.compile(
        frontend.Kind.JAX,
        function,
        inputs,
        {},
        [f"input {index}" for index in range(len(inputs))],
        [spu.Visibility.VIS_SECRET] * len(inputs),
        lambda outputs: [f"output {index}" for index in range(len(outputs))],
    )
    return executable
