"""Feature sets for NNUE chess networks: definitions, training batches and evaluations.

    import fsbench

    features = fsbench.FeatureSet("half-ka-v2-hm")
    for batch in fsbench.Batches("games.binpack", features, batch_size=16384):
        batch["stm_indices"], batch["stm_offsets"], batch["score"]   # numpy arrays

    fsbench.Network("nn.nnue").evaluate(["8/8/8/4k3/8/8/4P3/4K3 w - - 0 1"])
"""

from ._fsbench import (
    Batches,
    BatchIterator,
    Block,
    Delta,
    Error,
    Factors,
    FeatureSet,
    Network,
    RequestError,
    __version__,
    feature_sets,
    save_network,
    schemes,
)
from ._results import Table, results
from .types import Batch, Positions, QuantisationError, Sample, Scheme, ShippedSet

__all__ = [
    "Batch",
    "BatchIterator",
    "Batches",
    "Block",
    "Delta",
    "Error",
    "Factors",
    "FeatureSet",
    "Network",
    "Positions",
    "QuantisationError",
    "RequestError",
    "Sample",
    "Scheme",
    "ShippedSet",
    "Table",
    "__version__",
    "feature_sets",
    "results",
    "save_network",
    "schemes",
]
