"""The position behind a row, mixtures of files, and the progress of a build."""

import sys
import types

import numpy as np
import pytest

import fsbench
from test_batches import data, same, small

GAMES = "1. e4 { [%eval 0.2] } e5 { [%eval 0.3] } 2. Nf3 { [%eval 0.2] } Nc6 { [%eval 0.25] } 1-0\n\n"


def write_games(path, count=1):
    path.write_text(GAMES * count)
    return path


def test_rows_are_the_samples_of_their_numbers():
    batches = small(seed=3, needs="any")
    batch = next(iter(batches))
    samples = batches.samples(batch["sample_index"])
    assert len(samples) == batch["samples"]
    encoded = fsbench.FeatureSet("piece").encode_many([sample["fen"] for sample in samples])
    for name in ("stm_indices", "nstm_indices"):
        offsets = batch[name.replace("indices", "offsets")]
        rows = [sorted(batch[name][start:end]) for start, end in zip(offsets, offsets[1:])]
        assert np.concatenate(rows).tolist() == encoded[name].tolist()
    number = lambda value: np.nan if value is None else value
    for name in ("score", "result", "ply"):
        found = [number(sample[name]) for sample in samples]
        assert np.array_equal(batch[name], found, equal_nan=name != "ply"), name
    assert all(isinstance(sample["game"], int) for sample in samples)


def test_moves_lead_to_the_next_sample_of_the_game(tmp_path):
    batches = fsbench.Batches(write_games(tmp_path / "games.pgn", 2), "piece", needs="any")
    samples = batches.samples(range(batches.samples_per_epoch))
    assert [sample["game"] for sample in samples] == sorted(sample["game"] for sample in samples)
    assert len({sample["game"] for sample in samples}) == 2
    chess = pytest.importorskip("chess")
    for sample, following in zip(samples, samples[1:]):
        if sample["game"] == following["game"]:
            board = chess.Board(sample["fen"])
            board.push_uci(sample["move"])
            assert (board.board_fen(), board.turn) == (chess.Board(following["fen"]).board_fen(), following["ply"] % 2 == 0)


@pytest.mark.filterwarnings("ignore:the scores of")
def test_samples_of_a_binpack():
    path = data("stockfish-small.binpack")
    batches = fsbench.Batches(path, "piece", batch_size=1000, seed=2)
    batch = next(iter(batches))
    samples = batches.samples(batch["sample_index"])
    assert [sample["ply"] for sample in samples] == batch["ply"].tolist()
    assert np.allclose([sample["score"] for sample in samples], batch["score"])
    assert {sample["game"] for sample in samples} == {None}
    built = fsbench.Batches(path, "piece", read="built")
    assert isinstance(built.samples([0])[0]["game"], int)


def test_numbers_without_a_sample():
    batches = small()
    with pytest.raises(fsbench.RequestError, match="samples, numbered from 0; there is no 4000000000"):
        batches.samples([0, 4_000_000_000])
    with pytest.raises(TypeError, match=r"indices\[1\] is -1, not a number of a sample"):
        batches.samples([0, -1])
    with pytest.raises(TypeError, match="indices is an iterable of numbers of samples.*; found int"):
        batches.samples(5)
    assert batches.samples([]) == []


def test_globs_and_weights(tmp_path):
    write_games(tmp_path / "b.pgn", 20)
    write_games(tmp_path / "a.pgn", 10)
    of = lambda data: fsbench.Batches(data, "piece", needs="score", batch_size=64, seed=5)
    globbed, listed = of(str(tmp_path / "*.pgn")), of([tmp_path / "a.pgn", tmp_path / "b.pgn"])
    assert all(same(*pair) for pair in zip(globbed, listed, strict=True))
    once = globbed.samples_per_epoch
    mixture = of([f"{tmp_path}/a.pgn@2", f"{tmp_path}/b.pgn"])
    assert f"{tmp_path}/a.pgn@2, {tmp_path}/b.pgn: " in mixture.notes[0]
    assert repr(mixture) == f"Batches({tmp_path}/a.pgn@2, {tmp_path}/b.pgn, PIECE, batch_size=64)"
    assert mixture.samples_per_epoch == once + of(tmp_path / "a.pgn").samples_per_epoch
    for wrong, message in [
        (str(tmp_path / "*.fsd"), "no file matches"),
        (f"{tmp_path}/a.pgn@0", "the weight 0 must be above 0"),
        (str(tmp_path), "it is a folder"),
        (f"{tmp_path}/a.pgn@many", "cannot read .*a.pgn@many"),
        ("-", "data cannot be standard input"),
    ]:
        with pytest.raises(fsbench.RequestError, match=message):
            of(wrong)


def test_a_build_reports_its_progress(tmp_path):
    path = write_games(tmp_path / "games.pgn", 20_000)
    heard = []
    fsbench.Batches(path, "piece", progress=lambda done, total: heard.append((done, total)))
    size = path.stat().st_size
    assert heard[-1] == (size, size) and heard == sorted(heard)
    # It is built already.
    heard.clear()
    fsbench.Batches(path, "piece", progress=lambda done, total: heard.append((done, total)))
    assert heard == []


def test_an_exception_of_the_callback_ends_the_wait(tmp_path):
    def progress(done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        fsbench.Batches(write_games(tmp_path / "games.pgn", 50), "piece", progress=progress)
    with pytest.raises(TypeError, match="progress is True, or a function"):
        small(progress=3)


def test_a_bar_of_tqdm(tmp_path, monkeypatch):
    bars = []

    class Bar:
        n = 0

        def __init__(self, total, **_):
            self.total, self.closed = total, False
            bars.append(self)

        def update(self, more):
            self.n += more

        def close(self):
            self.closed = True

    tqdm = types.ModuleType("tqdm")
    tqdm.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", tqdm)
    path = write_games(tmp_path / "games.pgn", 100)
    fsbench.Batches(path, "piece", progress=True)
    (bar,) = bars
    assert bar.closed and bar.n == bar.total == path.stat().st_size
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with pytest.raises(ImportError, match="progress=True needs tqdm"):
        small(progress=True)
