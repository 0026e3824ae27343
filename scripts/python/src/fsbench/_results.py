"""The results of an experiment as tables."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from . import _program
from .types import Path


class Table(Mapping[str, "list[Any]"]):
    """A table: a list of values by column's name. What was not measured is None.

    `about[column]` says what a column means; `polars()` and `pandas()` give the data frame of those packages.
    """

    name: str
    about: dict[str, str]

    def __init__(self, name: str, columns: list[dict[str, Any]]) -> None:
        self.name = name
        self.about = {column["name"]: column["about"] for column in columns}
        self._columns = {column["name"]: column["values"] for column in columns}

    def __getitem__(self, column: str) -> list[Any]:
        return self._columns[column]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def height(self) -> int:
        """Number of rows."""
        return len(next(iter(self._columns.values()), []))

    def rows(self) -> list[dict[str, Any]]:
        """The rows, each a dict by column's name."""
        return [dict(zip(self._columns, row)) for row in zip(*self._columns.values())]

    def polars(self) -> Any:
        """A `polars.DataFrame`. Needs polars."""
        import polars  # type: ignore[import-not-found,unused-ignore]

        return polars.DataFrame(self._columns, infer_schema_length=None)

    def pandas(self) -> Any:
        """A `pandas.DataFrame`. Needs pandas."""
        import pandas  # type: ignore[import-untyped,import-not-found,unused-ignore]

        return pandas.DataFrame(self._columns)

    def __repr__(self) -> str:
        return f"Table({self.name}, {self.height} rows of {len(self)} columns)"


def results(*folders: Path) -> dict[str, Table]:
    """The tables of an experiment's results, by name: `summary` (a row per set and method), `runs` (per training), `epochs`,
    `matches` and, where there are some, `pairs`, `parts`, `scaling` and `crossings`.

        tables = fsbench.results("results/quickstart")
        for row in tables["summary"].rows():
            row["set"], row["validation_loss"], row["validation_loss_interval"]
        tables["runs"].polars().group_by("set").mean()

    Several folders are compared as if they were one experiment, as by `fsbench report`; without one, the newest results
    below `results/` are read. Columns are described by `Table.about`, and by `fsbench help columns`. Raises RequestError
    for a folder without results. The program fsbench, which comes with the package, reads them.
    """
    names = [os.fspath(folder) for folder in folders]
    document = json.loads(_program.output("report", "--tables", "--", *names))
    return {table["name"]: Table(table["name"], table["columns"]) for table in document["tables"]}
