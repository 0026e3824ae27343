from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Literal, NoReturn, final

from typing_extensions import Self

from .types import Batch, Board, Int32, Move, Path, Positions, QuantisationError, Sample, Scheme, ShippedSet

__version__: str

def feature_sets() -> list[ShippedSet]:
    """The sets that have names, in alphabetical order, each a `fsbench.ShippedSet`, a dict: those that come with fsbench,
    and those of the folders that `fsbench define` looks in."""

def schemes() -> list[Scheme]:
    """The quantisation schemes, each a `fsbench.Scheme`, a dict: the largest absolute weights that it holds."""

def save_network(
    path: Path,
    features: FeatureSet | Path,
    weights: Mapping[str, Any],
    *,
    scheme: str | None = None,
    score_unit: str = "cp",
    score_per_output: float | None = None,
    positions: Iterable[str | Board] | None = None,
    force: bool = False,
    activation: Literal["relu", "crelu", "screlu", "pairwise"] = "crelu",
    hidden_activation: Literal["relu", "crelu", "screlu", "dual"] = "crelu",
    skip: bool = False,
    skip_difference: bool = False,
    concatenated: bool = False,
    narrow: int = 0,
    bucket_rule: str = "stockfish",
) -> QuantisationError:
    """Writes a network that was trained elsewhere into the folder `path`: its float weights (`best.safetensors`) and its
    integers (`network.safetensors`), as `fsbench train` leaves them. `fsbench.Network`, `fsbench match` and all others
    take the folder. Returns the quantisation error, a `fsbench.QuantisationError`.

        error = fsbench.save_network("mine", "half-ka-v2-hm", {
            "ft.weight": rows,                 # [features, l1]: a row per feature
            "ft.bias": bias,                   # [l1]
            "layers.0.weight": hidden,         # [outputs, 2 * l1]: the side to move's half first
            "layers.0.bias": hidden_bias,      # [outputs]
            "layers.1.weight": output,         # [1, inputs]
            "layers.1.bias": output_bias,      # [1]
        })

    weights: arrays of real numbers, or tensors of PyTorch, by name; their sizes give the widths. Layers are numbered from
        the first hidden layer to the output. With output buckets they are `stacks.B.layers.N`, with B from 0;
        `psqt.weight` has a value per feature and bucket, which also may be further columns of `ft.weight`.
        `factor.weight` has the rows of `FeatureSet.factors()`, with the columns of `ft.weight`: they are added to the
        features' rows.
    scheme: "stockfish", "stockfish-18", "stockfish-19" or "simple"; by default the first that supports the shape.
        `fsbench.schemes()` says which weights they hold; a training clips to them.
    score_unit: the unit of the scores that the network gives: "cp", or "internal:PAWN" with its units per pawn.
    score_per_output: the score of output 1.0, in that unit; the scheme's own by default (600, of "simple" 400).
    positions: those in which the quantisation error is measured, as FENs or `chess.Board` objects; by default about 4,000
        of the sample games.
    force: replaces a network, or a run, that is in the folder.
    activation: after the accumulators: "relu", "crelu", "screlu" or "pairwise".
    hidden_activation: after the first hidden layer: "relu", "crelu", "screlu" or "dual".
    skip, skip_difference, concatenated, narrow, bucket_rule: as the options of `fsbench train` of these names.

    Raises RequestError for arrays that make no network, and Error for weights that the scheme cannot hold. Warns where
    accumulators overflow.
    """

class Error(Exception):
    """Something that fsbench was asked for failed."""

class RequestError(Error):
    """The request was wrong: a definition, a position, an option or a file. The message says what to do."""

@final
class Block:
    """A summand of a set."""

    name: str
    offset: int
    """Lowest index."""
    size: int
    """Number of features."""
    contexts: int
    """Number of contexts; a move into another one needs a refresh."""
    expression: str
    axes: list[tuple[str, int, int]]
    """(name, size, stride) of every axis."""

@final
class Delta:
    """What a move changes for one perspective."""

    added: Int32
    """Features that become active, ascending."""
    removed: Int32
    """Features that were active before, ascending."""
    refresh: bool
    """Whether a context changes, so that an engine recomputes the accumulator."""

@final
class Factors:
    """The virtual inputs of a set's features: coarser features that a trainer adds and merges on export.

    Feature i has the inputs `inputs[offsets[i]:offsets[i + 1]]`; the exported row of i is its own row plus those of its
    inputs.
    """

    @property
    def num_inputs(self) -> int:
        """Number of virtual inputs, all blocks' factors side by side."""
    @property
    def offsets(self) -> Int32:
        """int32, num_features + 1 elements: the start of every feature's inputs, and the end of the last one's."""
    @property
    def inputs(self) -> Int32:
        """int32: the inputs of all features, one after the other."""
    def expand(self, indices: Any, offsets: Any) -> tuple[Int32, Int32]:
        """The virtual inputs of positions from their active features: (indices, offsets), both int32, as in a batch, for an
        `embedding_bag` over `num_inputs` rows. An input counts once for every feature that has it.

        Takes arrays, tensors or lists of integers. Raises RequestError for an index that is no feature, and for offsets
        that do not ascend from 0 to the number of indices."""

@final
class FeatureSet:
    """A feature set: the name of a shipped one, the path of a TOML file, or an expression.

        features = fsbench.FeatureSet("square(P) * role(P) * color(P) for P in pieces")
        features.num_features     # 768

    Sets of equal identity are equal. Raises RequestError with the place of the mistake.
    """

    def __new__(cls, definition: Path) -> Self: ...
    @property
    def name(self) -> str:
        """Its name, or the expression."""
    @property
    def about(self) -> str | None:
        """A line about it; None if the definition has none."""
    @property
    def num_features(self) -> int:
        """Number of features of one perspective."""
    @property
    def identity(self) -> str:
        """A hash of the set's meaning: sets of equal identity number the same features in the same way."""
    @property
    def definition(self) -> str:
        """The definition as TOML that needs no other file."""
    @property
    def max_active(self) -> int:
        """An upper bound on the active features of a legal position, per perspective."""
    @property
    def blocks(self) -> list[Block]:
        """The summands, each a `fsbench.Block`."""
    def encode(self, fen: str | Board) -> list[Int32]:
        """The active features of a position: [stm, nstm], the side to move's and the other side's, int32, ascending.

        Takes a FEN or a `chess.Board`. Raises RequestError for what is no legal position."""
    def encode_many(self, fens: Iterable[str | Board]) -> Positions:
        """The active features of many positions as in a batch: a dict of int32 arrays `stm_indices`, `stm_offsets`,
        `nstm_indices` and `nstm_offsets`. The features of position i are `indices[offsets[i]:offsets[i + 1]]`, ascending.

        `fens` is an iterable of FENs or `chess.Board` objects. Raises RequestError for one that is no legal position,
        with its place in `fens`."""
    def delta(self, fen: str | Board, uci: str | Move) -> dict[Literal["white", "black"], Delta]:
        """What a move changes: {"white": Delta, "black": Delta}; listed also where a refresh is needed.

        The move is in UCI notation, or a `chess.Move`. Raises RequestError for one that is not legal."""
    def define(self, *, thorough: bool = False) -> dict[str, Any]:
        """Sizes, contexts, dead features, losslessness and cost: the dict that `fsbench define --format json` prints.

        Takes up to some seconds; `thorough` searches for proofs without a limit of time."""
    def factors(self) -> Factors | None:
        """The virtual inputs of the features, a `fsbench.Factors`; None if the definition has no factor."""
    def describe(self, index: int) -> str:
        """The meaning of a feature in words. Raises IndexError for an index that is no feature."""
    def __len__(self) -> int: ...

@final
class BatchIterator(Iterator[Batch]):
    """A running stream. It belongs to the process that called `iter()`; in a forked one it raises Error. Threads may share
    it: each batch goes to one of them.
    """

    def __next__(self) -> Batch: ...
    def close(self) -> None:
        """Ends the stream, from any thread; iteration ends. Batches that were handed out stay valid."""
    def __enter__(self) -> BatchIterator: ...
    def __exit__(
        self,
        exception_type: type[BaseException] | None = None,
        exception: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None: ...

@final
class Batches:
    """The training batches of a data file: what `fsbench samples-service` gives for the same options, byte for byte, made
    by threads of this process. Each is a `fsbench.Batch`, a dict of numpy arrays.

        batches = fsbench.Batches("games.binpack", "half-ka-v2-hm", batch_size=16384, epochs=0)
        for batch in batches:
            torch.from_numpy(batch["stm_indices"])

    `iter()` starts a stream from the beginning each time. Objects can be pickled, and used in forked processes: there the
    data are opened anew. In a worker of PyTorch's DataLoader a stream is the worker's share; together the workers give
    every batch once: `DataLoader(batches.dataset(), batch_size=None, num_workers=4)`.

    data: games or samples in any format that fsbench reads, or a list of files, which are read as one; None = the sample
        games that come with it. A name may be a glob, "games/*.pgn.zst", whose files are read by name. With a weight,
        "games.pgn@0.25" or "games.pgn@2", that part of its games is taken, or all of them so often: the files are built
        into one data set.
    features: a FeatureSet, or what names one.
    batch_size: samples of a batch; a sample of pqr is three positions.
    method: "eval": positions with their scores and results; "pqr": a position, the one after its move, and the one after
        another move.
    seed: of the order of the samples, and of the other move of pqr.
    threads: those that make batches; by default as many as the machine has.
    epochs: 0 = without end.
    shard: "I/N" gives every N-th batch from batch I on.
    read: "auto" decodes a binpack as it is, "built" builds it first, which gives the same samples; `min_ply` and `filter`
        leave out some.
    min_ply: leaves out positions before this ply, when the data are built.
    filter: "quiet" leaves out positions that are not quiet, when the data are built.
    training_share: the share of the training games that is read; games of a share are in every larger one.
    needs: "score", "result", "both" or "any": what a sample of eval must have; by default a score, in data that are built
        already what they were built for.
    from_unit: the unit of scores that the data do not record: "cp", or "internal:PAWN" with an engine's units per pawn.
    eval_unit: the unit of the scores in PGN comments: "cp" or "pawns".
    eval_view: whose view those scores are: "white" or "mover".
    layout: "csr": indices and offsets; "bitset": one bit per feature.
    bucket_rule: an expression with exactly one value in every position, which batches then have in `bucket`.
    slots: batches that the memory holds, 1 to 200. With more than `slots - threads` of them kept, further ones are copies.
    epoch_samples: samples of an epoch; by default all.
    split: "all", "train" or "validation".
    validation: the share of the games that are validation.
    split_seed: which games are validation.
    start_batch: the number of the first batch; that of the last one plus 1 goes on after it.
    shuffle: whether each epoch has an order of its own; False gives the data's order.
    progress: a function of (done, total), both in bytes, which hears how far a binpack is scanned, or games are built, at
        most ten times a second; True shows a bar of tqdm.

    Raises RequestError for wrong options and data, and warns of what it had to assume or to leave out.
    """

    def __new__(
        cls,
        data: Path | Iterable[Path] | None,
        features: FeatureSet | Path,
        *,
        batch_size: int = 4096,
        method: Literal["eval", "pqr"] = "eval",
        seed: int = 0,
        threads: int | None = None,
        epochs: int = 1,
        shard: str | None = None,
        read: Literal["auto", "built"] = "auto",
        min_ply: int | None = None,
        filter: Literal["none", "quiet"] | None = None,
        training_share: float | None = None,
        needs: Literal["score", "result", "both", "any"] | None = None,
        from_unit: str | None = None,
        eval_unit: Literal["cp", "pawns"] | None = None,
        eval_view: Literal["white", "mover"] | None = None,
        layout: Literal["csr", "bitset"] = "csr",
        bucket_rule: str | None = None,
        slots: int | None = None,
        epoch_samples: int | None = None,
        split: Literal["all", "train", "validation"] = "all",
        validation: float = 0.1,
        split_seed: int = 0,
        start_batch: int = 0,
        shuffle: bool = True,
        progress: bool | Callable[[int, int], object] | None = None,
    ) -> Self: ...
    @property
    def features(self) -> FeatureSet:
        """The set that encodes the positions."""
    @property
    def num_features(self) -> int:
        """Number of features of one perspective."""
    @property
    def batch_size(self) -> int:
        """Samples of a batch."""
    @property
    def positions_per_sample(self) -> int:
        """Positions of a sample: 1, or 3 for pqr."""
    @property
    def notes(self) -> list[str]:
        """What was built and what was left out, with its number: the lines that `fsbench samples-service` prints."""
    @property
    def samples_per_epoch(self) -> int:
        """Samples of an epoch, of all shards."""
    @property
    def batches_per_epoch(self) -> int:
        """Batches of an epoch, of all shards."""
    def __len__(self) -> int:
        """Number of batches that iteration gives; a TypeError for `epochs=0`, which is without end."""
    def samples(self, indices: Iterable[int]) -> list[Sample]:
        """The samples with these numbers, which batches have in `sample_index`: the positions behind their rows. Each is a
        `fsbench.Sample`, a dict.

            batches.samples(batch["sample_index"][:3])

        Raises RequestError for a number that the data do not have."""
    def __getitem__(self, key: object, /) -> NoReturn:
        """Says what to do in place of taking single batches, as PyTorch's DataLoader would."""
    def dataset(self) -> Any:
        """These batches as a `torch.utils.data.IterableDataset`, which PyTorch's DataLoader takes with `batch_size=None`.
        Imports torch."""
    def __iter__(self) -> BatchIterator: ...

@final
class Network:
    """A network from a file: fsbench's, Stockfish's (.nnue), a checkpoint, which is quantised, or a run's folder.

        network = fsbench.Network("nn.nnue")
        network.evaluate(["rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"])

    `arch` names the architecture of a .nnue file whose header fits two, such as "stockfish-15.1"; `last` takes the last
    epoch of a run instead of its best. Raises RequestError for a file that is no network.
    """

    def __new__(cls, path: Path, arch: str | None = None, *, last: bool = False) -> Self: ...
    @property
    def format(self) -> str:
        """"nnue", "fsbench", or "checkpoint, quantised"."""
    @property
    def architecture(self) -> str | None:
        """Of .nnue files, such as "stockfish-15.1"; None of others."""
    @property
    def features(self) -> FeatureSet:
        """The set of the network's inputs."""
    @property
    def shape(self) -> str:
        """The shape in words, such as "(768 → 256) × 2 → 32 → 1"."""
    def evaluate(self, fens: Iterable[str | Board], *, internal: bool = False) -> Int32:
        """The scores of positions from the side to move's view, int32 [positions]: centipawns, or with `internal` the
        network's own units. The integers are those of `fsbench eval`.

        `fens` is an iterable of FENs or `chess.Board` objects. Raises RequestError for one that is no legal position,
        with its place in `fens`."""
