"""The types of arguments and results that are dictionaries, arrays or objects of other packages."""

from __future__ import annotations

import os
from typing import Protocol, TypedDict, Union

import numpy as np
import numpy.typing as npt

Path = Union[str, "os.PathLike[str]"]
Int32 = npt.NDArray[np.int32]


class Board(Protocol):
    """A position that knows its FEN, as `chess.Board` does."""

    def fen(self) -> str: ...


class Move(Protocol):
    """A move that knows its UCI notation, as `chess.Move` does."""

    def uci(self) -> str: ...


class ShippedSet(TypedDict):
    """A set that has a name."""

    name: str
    about: str | None
    num_features: int


class Sample(TypedDict):
    """The position behind a row."""

    fen: str
    move: str | None
    """In UCI notation: the move played."""
    score: float | None
    """Centipawns from the side to move's view."""
    result: float | None
    """0, 0.5 or 1 from the side to move's view."""
    ply: int
    game: int | None
    """The game's number in the data. None in a binpack that is decoded while it is read: `read="built"` knows games."""


class Scheme(TypedDict):
    """A quantisation scheme: the largest absolute weights that it holds, to which a training clips."""

    name: str
    score_per_output: int
    """The score of output 1.0."""
    ft: float
    """Of the feature transformer, factors merged."""
    hidden: list[float]
    """Of the first and of the second hidden layer."""
    output: float


class QuantisationError(TypedDict):
    """How far the integer network is from the float one, over some positions. Differences are of expected results, from 0
    to 1."""

    shape: str
    """In words."""
    scheme: str
    positions: int
    mean: float
    p99: float
    max: float
    within_tolerance: float
    """Share of positions with a difference of at most `tolerance`."""
    tolerance: float
    accumulator_overflows: int
    """Positions in which an accumulator leaves sixteen bits: the engine would err there."""


class Positions(TypedDict):
    """Active features. Those of position i are `indices[offsets[i]:offsets[i + 1]]`."""

    stm_indices: Int32
    stm_offsets: Int32
    nstm_indices: Int32
    nstm_offsets: Int32


class Batch(TypedDict, total=False):
    """A batch. `stm` is the perspective of the side to move, `nstm` the other one.

    The arrays are views of the stream's memory, which stays theirs while one of them exists: keep batches as long as you
    like. They can be written to.
    """

    samples: int
    positions: int
    """samples, or 3 × samples for pqr: the position, after its move, after another move."""
    epoch: int
    batch: int
    """The batch's number, from 0 over all epochs; `start_batch = batch + 1` goes on after it."""
    stm_indices: Int32
    stm_offsets: Int32
    """positions + 1 elements: `embedding_bag(indices, weight, offsets, mode="sum", include_last_offset=True)`."""
    nstm_indices: Int32
    nstm_offsets: Int32
    stm_bits: npt.NDArray[np.uint64]
    """With layout="bitset", instead of indices and offsets."""
    nstm_bits: npt.NDArray[np.uint64]
    piece_count: npt.NDArray[np.uint8]
    """Per position."""
    bucket: npt.NDArray[np.uint8]
    """The value of `bucket_rule` per position, if there is one."""
    score: npt.NDArray[np.float32]
    """Centipawns from the side to move's view, NaN where there is none. Not for pqr."""
    result: npt.NDArray[np.float32]
    """0, 0.5 or 1 from the side to move's view, NaN where it is unknown. Not for pqr."""
    ply: npt.NDArray[np.uint16]
    sample_index: npt.NDArray[np.uint32]
    """The sample's number in the data."""
