"""Batches as PyTorch takes them. Imported by `Batches.dataset` only, so that fsbench does not need torch."""

from __future__ import annotations

from collections.abc import Iterator

from torch.utils.data import IterableDataset  # type: ignore[import-not-found,unused-ignore]

from ._fsbench import Batches
from .types import Batch


class Dataset(IterableDataset):
    """Batches; in a worker of a DataLoader, the worker's share of them."""

    def __init__(self, batches: Batches) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[Batch]:
        return iter(self.batches)
