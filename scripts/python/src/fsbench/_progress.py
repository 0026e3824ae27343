"""The bar that `progress=True` shows. Imported then only, so that fsbench does not need tqdm."""

from __future__ import annotations

from typing import Any


class Bar:
    """A bar of tqdm, from the first report on."""

    def __init__(self) -> None:
        try:
            from tqdm import tqdm  # type: ignore[import-untyped,import-not-found,unused-ignore]
        except ImportError as error:
            raise ImportError("progress=True needs tqdm: install it, or pass a function of (done, total)") from error
        self._tqdm = tqdm
        self._bar: Any = None

    def __call__(self, done: int, total: int) -> None:
        if self._bar is None:
            self._bar = self._tqdm(total=total, desc="fsbench reads", unit="B", unit_scale=True, leave=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
