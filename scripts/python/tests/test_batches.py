"""Batches: against the service's, and as Python objects."""

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest

import fsbench
from conftest import PIECE


def small(features="piece", **options):
    """Batches of the sample games."""
    return fsbench.Batches(None, features, **{"batch_size": 500, "threads": 2, **options})


def same(batch, other):
    return list(batch) == list(other) and all(
        value.tobytes() == other[name].tobytes() if isinstance(value, np.ndarray) else value == other[name]
        for name, value in batch.items()
    )


def is_view(array):
    return type(array.base).__name__ == "_BatchMemory"


def data(name):
    path = os.path.join(os.environ.get("FSBENCH_DATA", ""), name)
    if not os.path.isfile(path):
        pytest.skip(f"FSBENCH_DATA names no folder with {name}")
    return path


def services(program, *arguments):
    """Copies of a service's batches."""
    from samples_client import Samples

    with Samples([program.path, "samples-service", *map(str, arguments)]) as samples:
        for batch in samples:
            yield {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in batch.items()}


@pytest.mark.parametrize(
    "options",
    [
        {"seed": 7, "epochs": 2},
        {"method": "pqr", "seed": 3},
        {"layout": "bitset", "split": "train", "validation": 0.3, "split_seed": 4},
        {"shard": "1/3", "start_batch": 2, "epoch_samples": 9000},
        {"min_ply": 40, "filter": "quiet", "needs": "both", "shuffle": False},
    ],
    ids=str,
)
def test_batches_equal_the_services(program, options):
    arguments = []
    for name, value in options.items():
        arguments += ["--no-shuffle"] if name == "shuffle" else [f"--{name.replace('_', '-')}", value]
    expected = list(services(program, "piece", "--batch-size", 500, "--threads", 1, *arguments))
    batches = small(**options)
    found = list(batches)
    assert len(expected) > 2 and len(found) == len(expected) == len(batches)
    assert all(same(batch, other) for batch, other in zip(found, expected))


def test_a_binpacks_batches_equal_the_services(program):
    path = data("stockfish-small.binpack")
    with pytest.warns(UserWarning, match="the scores of .* are assumed to be internal units, 208 per pawn"):
        found = fsbench.Batches(path, "half-ka-v2-hm", batch_size=4096, seed=5, threads=2)
    expected = services(program, "half-ka-v2-hm", "--data", path, "--batch-size", 4096, "--seed", 5)
    assert all(same(batch, other) for batch, other in zip(found, expected, strict=True))
    with pytest.raises(fsbench.RequestError, match="^filter has no effect: .* give read=\"built\" to filter it"):
        fsbench.Batches(path, "piece", filter="quiet", from_unit="cp")
    with pytest.raises(fsbench.RequestError, match="^eval_view has no effect: .* has no comments with scores"):
        fsbench.Batches(path, "piece", eval_view="mover", from_unit="cp")


@pytest.mark.filterwarnings("ignore:the scores of")
def test_a_list_of_files_is_read_as_one(program):
    path = data("stockfish-small.binpack")
    found = fsbench.Batches([path, path], "piece", batch_size=16384, seed=5, threads=2)
    arguments = ["piece", "--data", path, "--data", path, "--batch-size", 16384, "--seed", 5]
    expected = list(services(program, *arguments))
    assert all(same(batch, other) for batch, other in zip(found, expected, strict=True))
    copy = pickle.loads(pickle.dumps(found))
    assert all(same(batch, other) for batch, other in zip(copy, expected, strict=True))
    with pytest.raises(fsbench.RequestError, match="data is an empty list"):
        fsbench.Batches([], "piece")


def test_features_of_a_batch_are_those_of_its_positions():
    """An expression, a path and an object mean the same; every position has its pieces' features."""
    batch = next(iter(small(fsbench.FeatureSet(PIECE))))
    assert same(batch, next(iter(small(PIECE))))
    offsets = batch["stm_offsets"]
    assert (np.diff(offsets) == batch["piece_count"]).all() and offsets[-1] == len(batch["stm_indices"])
    assert batch["samples"] == batch["positions"] == len(batch["score"]) == 500


def test_arrays_are_views_and_stay_valid():
    batches = small(slots=6)
    iterator = iter(batches)
    first = next(iterator)
    array = first["stm_indices"]
    assert is_view(array) and array.flags.writeable and array.flags.aligned and array.flags.c_contiguous
    assert array.base is first["score"].base is not None
    kept = [first] + list(iterator)
    assert len(kept) == len(batches) > 6
    # Six slots, of which the two threads keep two.
    assert [is_view(batch["score"]) for batch in kept] == [True] * 4 + [False] * (len(kept) - 4)
    copies = [{name: np.copy(value) for name, value in batch.items()} for batch in kept]
    del first, array, iterator
    gc.collect()
    again = list(batches)
    assert all(
        np.array_equal(batch[name], value, equal_nan=value.dtype.kind == "f")
        for batch, other in zip(kept, copies)
        for name, value in other.items()
    )
    assert all(same(batch, other) for batch, other in zip(kept, again))


@pytest.mark.parametrize("threads", [1, 3])
def test_one_slot_is_enough(threads):
    expected = list(small(seed=4))
    with iter(small(seed=4, slots=1, threads=threads)) as iterator:
        kept = list(iterator)
    assert len(kept) == len(expected) > 2
    assert all(same(batch, other) for batch, other in zip(kept, expected))
    for batch, other in zip(small(seed=4, slots=1, threads=threads), expected, strict=True):
        assert same(batch, other)


@pytest.mark.parametrize("slots", [0, 201, 1000])
def test_other_numbers_of_slots_are_refused(slots):
    with pytest.raises(fsbench.RequestError, match=f"the number of slots is {slots}; it must be 1 to 200"):
        small(slots=slots)


@pytest.mark.filterwarnings("ignore")
def test_every_source_gives_the_same_number_of_samples(program, tmp_path):
    games = "1. e4 { [%eval 0.2] } e5 { [%eval 0.3] } 2. Nf3 { [%eval 0.2] } Nc6 { [%eval 0.25] } 1-0\n\n" * 30
    (tmp_path / "games.pgn").write_text(games)
    for name in ["games.fsd", "games.binpack", "games.txt"]:
        program("dataset", "convert", "games.pgn", name, "--to-unit", "cp", cwd=tmp_path)
    for name in ["games.pgn", "games.fsd", "games.binpack", "games.txt"]:
        for read in ["auto", "built"]:
            batches = fsbench.Batches(tmp_path / name, "piece", read=read, from_unit="cp")
            assert batches.samples_per_epoch == sum(len(batch["score"]) for batch in batches) == 90, (name, read)


def test_what_is_left_out_is_counted(tmp_path):
    games = tmp_path / "games.pgn"
    games.write_text("1. e4 { [%eval 0.2] } e5 { [%eval 0.3] } 2. Nf3 { [%eval 0.2] } 1-0\n")
    (note,) = fsbench.Batches(games, "piece", min_ply=2).notes
    assert "games.pgn: 1 of 3 positions of 1 games: 2 before ply 2; built into " in note
    (note,) = fsbench.Batches(games, "piece").notes
    assert "games.pgn: 2 of 3 positions of 1 games: 1 without a score; built into " in note
    games.write_text(games.read_text() + "\n1. e4 { [%eval 0.2] } Ke4 1-0\n\nno game at all\n")
    with pytest.warns(UserWarning, match="games.pgn: 2 broken games are left out; the first: .* illegal move at byte "):
        fsbench.Batches(games, "piece")
    games.write_text("1. e4 { [%eval 0.16/16] } e5 { [%eval 0.3/12] } 1-0\n")
    said, _ = sorted(fsbench.Batches(games, "piece").notes, key=lambda line: "built" in line)
    assert "2 scores with a depth after a slash (`[%eval 0.16/16]`) were taken for the mover's view; eval_view says" in said
    games.write_text("1. e4 e5 1-0\n")
    with pytest.raises(fsbench.RequestError, match="train with λ = 0; give needs=\"result\" for that"):
        fsbench.Batches(games, "piece")


def test_numbers_of_numpy_are_numbers():
    batches = small(batch_size=np.int64(700), validation=np.float32(0.5), split="train", shuffle=np.bool_(False))
    assert batches.batch_size == 700 and (np.diff(next(iter(batches))["sample_index"].astype(int)) > 0).all()


def test_what_objects_say_of_themselves():
    batches = small()
    iterator = iter(batches)
    assert repr(iterator) == "BatchIterator(running)"
    iterator.close()
    assert repr(iterator) == "BatchIterator(ended)"
    with pytest.raises(TypeError, match="batches come one after the other; .* takes batches.dataset()"):
        batches[0]


def test_a_loop_that_keeps_nothing_copies_nothing():
    assert all(is_view(batch["score"]) for batch in small(epochs=3))


def test_memory_does_not_grow():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    batches = small(batch_size=4000, epochs=0)
    iterator = iter(batches)
    for _ in range(50):
        next(iterator)
    before = resident()
    for _ in range(500):
        next(iterator)
    assert resident() - before < 30e6
    iterator.close()
    assert next(iterator, None) is None


def test_shards_and_starts_make_up_the_stream():
    whole = list(small(epochs=2))
    parts = [list(small(epochs=2, shard=f"{index}/3")) for index in range(3)]
    merged = sorted(sum(parts, []), key=lambda batch: batch["batch"])
    assert all(same(*pair) for pair in zip(whole, merged, strict=True))
    assert all(same(*pair) for pair in zip(whole[5:], small(epochs=2, start_batch=5), strict=True))
    with pytest.raises(TypeError, match="without end"):
        len(small(epochs=0))


def test_workers_of_a_data_loader_share_the_batches(monkeypatch):
    """PyTorch's `get_worker_info` as a worker sees it."""
    data = types.ModuleType("torch.utils.data")
    monkeypatch.setitem(sys.modules, "torch.utils.data", data)
    numbers = []
    for worker in range(3):
        data.get_worker_info = lambda: types.SimpleNamespace(id=worker, num_workers=3)
        numbers += [batch["batch"] for batch in small(epochs=2, shard="1/2")]
    data.get_worker_info = lambda: None
    expected = [batch["batch"] for batch in small(epochs=2, shard="1/2")]
    assert sorted(numbers) == expected and len(expected) > 6


def first_batch(batches):
    return pickle.dumps({name: np.copy(value) for name, value in next(iter(batches)).items()})


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_worker_processes_start_streams_of_their_own(method):
    batches = small(seed=9)
    running = iter(batches)
    expected = next(running)
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = [pickle.loads(batch) for batch in pool.map_async(first_batch, [batches] * 3).get(120)]
    assert all(np.array_equal(batch[name], value, equal_nan=name in ("score", "result"))
               for batch in found for name, value in expected.items())
    assert next(running)["batch"] == 1


def test_a_forked_process_is_told_that_a_stream_is_not_its_own():
    batches = small(epochs=0)
    running = iter(batches)
    held = next(running)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        status = 1
        try:
            next(running)
        except fsbench.Error as error:
            status = 0 if f"threads of process {os.getppid()}" in str(error) else 2
        # Its own stream works, and the parent's arrays can be read and dropped.
        if status == 0 and not (next(iter(batches))["score"] == held["score"]).any():
            status = 3
        del held, running
        gc.collect()
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert next(running)["batch"] == 1


def test_ctrl_c_ends_the_wait_for_a_batch():
    # Where tests run in the background, SIGINT is ignored from the start.
    code = """
import fsbench, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
for batch in fsbench.Batches(None, "threats-v16", batch_size=200_000, threads=1, epochs=0):
    print("batch", flush=True)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "batch\n"
    child.send_signal(signal.SIGINT)
    start = time.monotonic()
    _, errors = child.communicate(timeout=60)
    assert child.returncode in (1, 130, -signal.SIGINT) and errors.rstrip().endswith("KeyboardInterrupt"), errors
    assert time.monotonic() - start < 30


def test_an_interrupted_build_leaves_no_file(tmp_path):
    """The build goes on out of sight until Python ends."""
    games = "1. e4 { [%eval 0.2] } e5 { [%eval 0.3] } 2. Nf3 { [%eval 0.2] } Nc6 { [%eval 0.25] } 1-0\n\n" * 400_000
    (tmp_path / "games.pgn").write_text(games)
    code = f"""
import fsbench, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
print("started", flush=True)
fsbench.Batches({str(tmp_path / "games.pgn")!r}, "piece", threads=1)
print("ended", flush=True)
"""
    cache = tmp_path / "cache"
    child = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "FSBENCH_CACHE": str(cache)},
    )
    assert child.stdout.readline() == "started\n"
    deadline = time.monotonic() + 60
    while not list(cache.glob("data/.*")):
        assert time.monotonic() < deadline and child.poll() is None
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    output, errors = child.communicate(timeout=60)
    assert output == "" and errors.rstrip().endswith("KeyboardInterrupt"), output + errors
    assert list(cache.glob("data/.*")) == []


def test_threads_share_a_stream():
    expected = list(small(epochs=2))
    iterator = iter(small(epochs=2, slots=2))
    found, failures = [], []

    def take():
        try:
            for batch in iterator:
                found.append(batch)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    found.sort(key=lambda batch: batch["batch"])
    assert all(same(*pair) for pair in zip(found, expected, strict=True))


def test_close_ends_a_wait_in_another_thread():
    """A batch takes the stream's only thread seconds; the close does not wait for it."""
    iterator = iter(small("threats-v16", batch_size=400_000, threads=1, epochs=0))
    waits, ended = threading.Event(), threading.Event()

    def wait():
        waits.set()
        if next(iterator, None) is None:
            ended.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert waits.wait(60)
    iterator.close()
    assert ended.wait(60)
    thread.join()
    assert next(iterator, None) is None


def test_a_data_set_for_torch(monkeypatch):
    """Without torch: a module in its place that has what the data set needs of it."""
    data = types.ModuleType("torch.utils.data")
    data.IterableDataset = type("IterableDataset", (), {})
    data.get_worker_info = lambda: None
    for name in ("torch", "torch.utils"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "torch.utils.data", data)
    monkeypatch.delitem(sys.modules, "fsbench._torch", raising=False)
    try:
        dataset = small(epochs=2).dataset()
        assert isinstance(dataset, data.IterableDataset) and not hasattr(dataset, "__len__")
        assert all(same(*pair) for pair in zip(dataset, small(epochs=2), strict=True))
    finally:
        sys.modules.pop("fsbench._torch", None)


@pytest.mark.parametrize("workers", [0, 2])
def test_torchs_data_loader_gives_every_batch_once(workers):
    torch = pytest.importorskip("torch")
    loader = torch.utils.data.DataLoader(small(epochs=2).dataset(), batch_size=None, num_workers=workers)
    numbers = sorted(int(batch["batch"]) for batch in loader)
    assert numbers == [batch["batch"] for batch in small(epochs=2)]
    with pytest.raises(TypeError, match="takes batches.dataset()"):
        next(iter(torch.utils.data.DataLoader(small(), batch_size=None)))


def test_wrong_requests():
    def refused(message, kind=fsbench.RequestError, **options):
        with pytest.raises(kind, match=message):
            small(**options)

    refused("method is \"eval\" or \"pqr\", not 'evil'", method="evil")
    refused("filter is \"none\" or \"quiet\", not \\['quiet'\\]", filter=["quiet"])
    for wrong in ("many", -1, 1.5, 2**70, True, (3,), np.float64(2)):
        refused("batch_size is a whole number from 0 on, not ", batch_size=wrong)
    refused("min_ply is a whole number from 0 to 65535, not 70000", min_ply=70_000)
    refused("shuffle is True or False, not 'yes'", shuffle="yes")
    for wrong in ("0.1", float("nan"), [0.1]):
        refused("training_share is a finite number, not ", training_share=wrong)
    refused("shard is a text such as \"0/2\", not 0", shard=0)
    refused("the batch size is 0", batch_size=0)
    refused("the number of threads is 0", threads=0)
    refused("the last of 2 is 1/2", shard="2/2")
    refused("the validation share is 2", validation=2)
    refused("there is no feature set `nothing-like`", features="nothing-like")
    refused("Batches has no option batchsize; did you mean batch_size\\?", TypeError, batchsize=1)
    refused("cpw chooses a bucket by the number of pieces, which batches have in the array `piece_count`; bucket_rule takes", bucket_rule="cpw")
    refused("start_batch is 1000, and the epochs have 4 batches", start_batch=1000, batch_size=120_000)
    assert len(small(start_batch=4, batch_size=120_000)) == 0
    with pytest.raises(TypeError, match="not a mapping; a weight follows its path"):
        fsbench.Batches({"games.pgn": 0.5}, "piece")
    with pytest.raises(fsbench.RequestError, match="data has an empty path"):
        fsbench.Batches("", "piece")
    with pytest.raises(fsbench.RequestError, match="/nowhere.fsd"):
        fsbench.Batches("/nowhere.fsd", "piece")
    with pytest.raises(TypeError, match="needs features"):
        fsbench.Batches(None)
    for wrong, found in [(3, "int"), (["/a.fsd", 3], "int"), ([None], "NoneType")]:
        with pytest.raises(TypeError, match=f"data is a path, a list of paths, or None for the sample games; found {found}"):
            fsbench.Batches(wrong, "piece")


def test_torch_takes_the_arrays():
    torch = pytest.importorskip("torch")
    batches = small()
    weights = torch.rand(batches.num_features, 4)
    for batch in batches:
        indices, offsets = torch.from_numpy(batch["stm_indices"]), torch.from_numpy(batch["stm_offsets"])
        sums = torch.nn.functional.embedding_bag(indices, weights, offsets, mode="sum", include_last_offset=True)
        expected = np.add.reduceat(weights.numpy()[batch["stm_indices"]], batch["stm_offsets"][:-1])
        assert np.allclose(sums.numpy(), expected, atol=1e-4)
