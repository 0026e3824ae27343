"""The tables of an experiment's results, and the program that reads them."""

import subprocess
import sys

import pytest

import fsbench
from conftest import ROOT

RESULTS = ROOT / "results" / "quickstart"


@pytest.fixture(scope="module")
def tables(program):
    return fsbench.results(RESULTS)


def test_tables_have_rows_and_every_column_a_meaning(tables):
    assert {"summary", "runs", "epochs", "matches", "pairs", "parts"} <= set(tables)
    for name, table in tables.items():
        assert table.name == name and table.height > 0, name
        assert list(table.about) == list(table) and all(table.about.values()), name
        assert {len(values) for values in table.values()} == {table.height}, name
    summary, runs = tables["summary"], tables["runs"]
    for row in summary.rows():
        losses = [
            run["validation_loss"] for run in runs.rows() if (run["set"], run["method"]) == (row["set"], row["method"])
        ]
        assert row["validation_loss_count"] == len(losses) == row["seeds_done"]
        assert row["validation_loss"] == pytest.approx(sum(losses) / len(losses))
    assert "half of the 95% interval of validation_loss: loss on games" in summary.about["validation_loss_interval"]
    assert repr(runs) == f"Table(runs, {runs.height} rows of {len(runs)} columns)"


def test_tables_are_those_that_the_report_writes(tables, program, tmp_path):
    import csv

    program("report", RESULTS, "--out", tmp_path)
    assert {path.stem for path in (tmp_path / "tables").glob("*.csv")} == set(tables)
    for name, table in tables.items():
        with open(tmp_path / "tables" / f"{name}.csv", newline="") as file:
            written = list(csv.DictReader(file))
        assert len(written) == table.height and list(written[0]) == list(table)
        for row, expected in zip(written, table.rows()):
            for column, value in expected.items():
                if isinstance(value, (int, float)):
                    assert float(row[column]) == pytest.approx(value), (name, column)
                else:
                    assert row[column] == (value or ""), (name, column)


def test_the_programs_page_describes_every_column(tables, program):
    page = program("help", "columns")
    for name, table in tables.items():
        section = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
        for column in table:
            base = [column] + [column.removesuffix(end) for end in ("_interval", "_count", "_low", "_high")]
            assert any(f"\n| {each} | " in section for each in base), (name, column)


def test_data_frames(tables):
    polars = pytest.importorskip("polars")
    frame = tables["runs"].polars()
    assert isinstance(frame, polars.DataFrame) and frame.shape == (tables["runs"].height, len(tables["runs"]))
    assert frame["validation_loss"].to_list() == tables["runs"]["validation_loss"]


def test_data_frames_of_pandas(tables):
    pandas = pytest.importorskip("pandas")
    frame = tables["summary"].pandas()
    assert isinstance(frame, pandas.DataFrame) and list(frame["set"]) == tables["summary"]["set"]


def test_folders_without_results(program, tmp_path):
    with pytest.raises(fsbench.RequestError, match="no results") as refused:
        fsbench.results(tmp_path)
    assert str(tmp_path) in str(refused.value) and not str(refused.value).startswith("error")
    with pytest.raises(fsbench.RequestError, match="--help: no such folder"):
        fsbench.results("--help")


def test_without_the_program(tmp_path):
    code = f"""
import fsbench, os
os.environ["PATH"] = ""
from fsbench import _program
_program.places = lambda: iter(())
try:
    fsbench.results({str(RESULTS)!r})
except fsbench.Error as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "the program fsbench is not there" in said and "FSBENCH_PROGRAM" in said
