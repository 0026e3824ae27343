"""The types of arguments and results that are dictionaries, arrays or objects of other packages."""

from __future__ import annotations

import os
from typing import Any, Protocol, TypedDict, Union

import numpy as np
import numpy.typing as npt

Path = Union[str, "os.PathLike[str]"]
Int32 = np.ndarray[Any, np.dtype[np.int32]]


class Board(Protocol):
    """A position that knows its FEN, as `chess.Board` does."""

    def fen(self) -> str: ...


class Move(Protocol):
    """A move that knows its UCI notation, as `chess.Move` does."""

    def uci(self) -> str: ...


class ShippedSet(TypedDict):
    """A set that has a name.

    name: what `fsbench.FeatureSet` takes
    about: a line about it; None if its definition has none
    num_features: the features of one perspective
    """

    name: str
    about: str | None
    num_features: int


class Sample(TypedDict):
    """The position behind a row.

    fen: the position
    move: the move played, in UCI notation; None without one
    score: centipawns from the side to move's view; None without one
    result: 0, 0.5 or 1 from the side to move's view; None if it is unknown
    ply: half-moves since the start of the game
    game: the game's number in the data; None in a binpack that is decoded while it is read: `read="built"` knows games
    """

    fen: str
    move: str | None
    score: float | None
    result: float | None
    ply: int
    game: int | None


class Scheme(TypedDict):
    """A quantisation scheme: the largest absolute weights that it holds, to which a training clips.

    name: what `fsbench.save_network` takes
    score_per_output: the score of output 1.0
    ft: of the feature transformer, factors merged
    hidden: of the first and of the second hidden layer
    output: of the output layer
    """

    name: str
    score_per_output: int
    ft: float
    hidden: list[float]
    output: float


class QuantisationError(TypedDict):
    """How far the integer network is from the float one, over some positions. Differences are of expected results, from 0
    to 1.

    shape: the network's shape in words
    scheme: the quantisation scheme
    positions: number of positions
    mean, p99, max: of the absolute differences
    within_tolerance: share of positions with a difference of at most `tolerance`
    accumulator_overflows: positions in which an accumulator leaves sixteen bits: the engine errs there
    """

    shape: str
    scheme: str
    positions: int
    mean: float
    p99: float
    max: float
    within_tolerance: float
    tolerance: float
    accumulator_overflows: int


class Positions(TypedDict):
    """Active features. Those of position i are `indices[offsets[i]:offsets[i + 1]]`, ascending.

    stm_indices, nstm_indices: int32, of the side to move's and of the other side's perspective
    stm_offsets, nstm_offsets: int32, positions + 1 elements
    """

    stm_indices: Int32
    stm_offsets: Int32
    nstm_indices: Int32
    nstm_offsets: Int32


class Batch(TypedDict, total=False):
    """A batch: a dict of numbers and arrays. `stm` is the perspective of the side to move, `nstm` the other one.

    samples: number of samples
    positions: samples, or 3 × samples for pqr: the position, after its move, after another move
    epoch: from 0
    batch: the batch's number, from 0 over all epochs; `start_batch = batch + 1` goes on after it
    stm_indices, nstm_indices: int32, the active features of all positions, one after the other
    stm_offsets, nstm_offsets: int32 [positions + 1], for `embedding_bag(indices, weight, offsets, mode="sum",
        include_last_offset=True)`
    stm_bits, nstm_bits: uint64, with layout="bitset" instead of indices and offsets: a bit per feature, the lowest of the
        first word for feature 0; the words of a position follow those of the one before
    piece_count: uint8 [positions]
    bucket: uint8 [positions], the value of `bucket_rule`, if there is one
    score: float32 [samples], centipawns from the side to move's view, NaN where there is none; not for pqr
    result: float32 [samples], 0, 0.5 or 1 from the side to move's view, NaN where it is unknown; not for pqr
    ply: uint16 [samples]
    sample_index: uint32 [samples], the samples' numbers in the data, which `Batches.samples` takes

    The arrays are views of the stream's memory, which stays theirs while one of them exists: keep batches as long as you
    like. They can be written to.
    """

    samples: int
    positions: int
    epoch: int
    batch: int
    stm_indices: Int32
    stm_offsets: Int32
    nstm_indices: Int32
    nstm_offsets: Int32
    stm_bits: npt.NDArray[np.uint64]
    nstm_bits: npt.NDArray[np.uint64]
    piece_count: npt.NDArray[np.uint8]
    bucket: npt.NDArray[np.uint8]
    score: npt.NDArray[np.float32]
    result: npt.NDArray[np.float32]
    ply: npt.NDArray[np.uint16]
    sample_index: npt.NDArray[np.uint32]
