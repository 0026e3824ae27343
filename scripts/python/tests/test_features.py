"""Feature sets: against encoders written here, and against the program."""

import ast
import inspect
import os
import pathlib
import pickle
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import fsbench
from conftest import FENS, PIECE, START

ROLES = "pnbrqk"


def pieces(fen, flip):
    """(square, role, whether the piece is White's) of every piece; `flip` mirrors the ranks."""
    for rank, row in enumerate(fen.split()[0].split("/")):
        file = 0
        for letter in row:
            if letter.isdigit():
                file += int(letter)
            else:
                yield ((7 - rank) ^ (7 if flip else 0)) * 8 + file, ROLES.index(letter.lower()), letter.isupper()
                file += 1


def sides(fen):
    """Whether the side to move is White, then the same of the other side."""
    white = fen.split()[1] == "w"
    return white, not white


@pytest.mark.parametrize("fen", FENS)
def test_encode_equals_an_encoder_in_python(fen):
    features = fsbench.FeatureSet(PIECE)
    for active, white in zip(features.encode(fen), sides(fen)):
        own = [square * 12 + role * 2 + (side != white) for square, role, side in pieces(fen, not white)]
        assert active.dtype == np.int32
        assert active.tolist() == sorted(own)
    king_file = fsbench.FeatureSet("file(K) * square(P) for P in pieces")
    for active, white in zip(king_file.encode(fen), sides(fen)):
        own = list(pieces(fen, not white))
        king = next(square for square, role, side in own if role == 5 and side == white)
        assert active.tolist() == sorted(king % 8 * 64 + square for square, _, _ in own)


@pytest.mark.parametrize("name", ["piece", "half-ka-v2-hm", "threats-v10"])
def test_encode_many_is_encode_of_each(name):
    features = fsbench.FeatureSet(name)
    many = features.encode_many(FENS)
    assert list(many) == ["stm_indices", "stm_offsets", "nstm_indices", "nstm_offsets"]
    for number, fen in enumerate(FENS):
        for side, expected in zip(("stm", "nstm"), features.encode(fen)):
            start, end = many[f"{side}_offsets"][number : number + 2]
            assert many[f"{side}_indices"][start:end].tolist() == expected.tolist()
    assert len(many["stm_offsets"]) == len(FENS) + 1
    empty = features.encode_many([])
    assert empty["stm_offsets"].tolist() == [0] and len(empty["nstm_indices"]) == 0


def test_encode_equals_the_program(program):
    for name in ["half-ka-v2-hm", "threats-v16"]:
        features = fsbench.FeatureSet(name)
        for fen in FENS:
            document = program.json("encode", name, "--fen", fen)
            white, _ = sides(fen)
            expected = [document["white"], document["black"]][:: 1 if white else -1]
            assert [active.tolist() for active in features.encode(fen)] == expected


def test_delta():
    delta = fsbench.FeatureSet("square(P) for P in pieces").delta(START, "g1f3")
    assert (delta["white"].added.tolist(), delta["white"].removed.tolist()) == ([21], [6])
    assert not delta["white"].refresh and delta["black"].added.tolist() == [45]
    castling = fsbench.FeatureSet("half-ka-v2-hm").delta(FENS[1], "e8g8")
    assert castling["black"].refresh and not castling["white"].refresh
    assert len(castling["white"].added) == 2
    assert "removed" in repr(castling["white"])


def test_a_delta_leads_from_one_position_to_the_next():
    features = fsbench.FeatureSet("threats-v10")
    after = "rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - 0 1"
    before, then, delta = features.encode(START), features.encode(after), features.delta(START, "e2e4")
    for active, later, name in [(before[0], then[1], "white"), (before[1], then[0], "black")]:
        change = delta[name]
        assert set(active) - set(change.removed) | set(change.added) == set(later)


def test_what_a_set_says_of_itself(tmp_path):
    features = fsbench.FeatureSet("half-ka-v2-hm")
    assert features.num_features == len(features) == 22528
    block = features.blocks[0]
    assert (block.offset, block.size, block.contexts) == (0, 22528, 64)
    assert np.prod([size for _, size, _ in block.axes]) == 22528
    assert "King" in features.describe(22527) or "king" in features.describe(22527)
    for wrong in (22528, -1, 2**70):
        with pytest.raises(IndexError, match=f"HALF-KA-V2-HM has 22528 features; there is no {wrong}"):
            features.describe(wrong)
    with pytest.raises(TypeError):
        features.describe("1")
    path = tmp_path / "mine.toml"
    path.write_text(f'name = "mine"\nfeatures = "{PIECE}"\n')
    mine = fsbench.FeatureSet(path)
    assert mine.name == "mine" and mine == fsbench.FeatureSet(PIECE) and mine != features
    assert hash(mine) == hash(fsbench.FeatureSet(str(path)))
    copy = pickle.loads(pickle.dumps(mine))
    assert (copy.name, copy.identity, copy.definition) == (mine.name, mine.identity, mine.definition)


def test_define_is_what_the_program_prints(program):
    definition = fsbench.FeatureSet("half-ka-v2-hm").define()
    assert definition["num_features"] == 22528 and definition["dead"]["live"] > 20000
    assert definition == program.json("define", "half-ka-v2-hm")


def test_factors():
    features = fsbench.FeatureSet('features = "file(K) * square(P) for P in pieces"\nfactor = "square(P)"')
    factors = features.factors()
    assert factors.num_inputs == 64
    assert factors.offsets.tolist() == list(range(513))
    assert factors.inputs.tolist() == [feature % 64 for feature in range(512)]
    batch = features.encode_many(FENS)
    indices, offsets = factors.expand(batch["stm_indices"], batch["stm_offsets"])
    assert (indices == batch["stm_indices"] % 64).all() and (offsets == batch["stm_offsets"]).all()
    assert fsbench.FeatureSet(PIECE).factors() is None
    int32 = lambda *values: np.array(values, np.int32)
    for wrong in [
        (int32(512), int32(0, 1)),
        (int32(-1), int32(0, 1)),
        (int32(1), int32(0, 2)),
        (int32(1), int32(1, 0)),
        (int32(1, 2), int32(0, 1)),
        (int32(), int32()),
    ]:
        with pytest.raises(fsbench.RequestError):
            factors.expand(*wrong)
    # What other packages and other widths make of indices.
    for given in [(np.array([65, 2]), np.array([0, 2])), ([65, 2], [0, 2]), (int32(65, 0, 2)[::2], np.uint8([0, 2]))]:
        assert [array.tolist() for array in factors.expand(*given)] == [[1, 2], [0, 2]]
    for wrong in ([1.5], [2**40], [[1]], None, "12", 1):
        with pytest.raises(TypeError, match="indices is not a one-dimensional array of int32 numbers"):
            factors.expand(wrong, [0, 1])


def test_factors_of_tensors():
    torch = pytest.importorskip("torch")
    features = fsbench.FeatureSet('features = "file(K) * square(P) for P in pieces"\nfactor = "square(P)"')
    for dtype in (torch.int32, torch.int64):
        indices, offsets = (torch.tensor(values, dtype=dtype) for values in ([65, 2], [0, 2]))
        assert [array.tolist() for array in features.factors().expand(indices, offsets)] == [[1, 2], [0, 2]]


def test_mistakes_are_shown_with_their_place():
    def refused(message, call, *arguments):
        with pytest.raises(fsbench.RequestError, match=message):
            call(*arguments)

    refused("there is no feature set `half-kaa`; did you mean", fsbench.FeatureSet, "half-kaa")
    refused("there is no file `half-kaa.toml`, and there is no feature set `half-kaa`", fsbench.FeatureSet, "half-kaa.toml")
    refused(r"squar[\s\S]*\^", fsbench.FeatureSet, "squar(P) for P in pieces")
    features = fsbench.FeatureSet("piece")
    refused('"no" is not a FEN', features.encode, "no")
    refused("position 1: .* is not a legal position", features.encode_many, [START, "8/8/8/8/8/8/8/8 w - - 0 1"])
    refused("`e2e5` is not a legal move", features.delta, START, "e2e5")
    def wrong_type(message, call, *arguments):
        with pytest.raises(TypeError, match=message):
            call(*arguments)

    wrong_type("a feature set is a name, a path or an expression, found int", fsbench.FeatureSet, 3)
    wrong_type("expected a FEN or a chess.Board, found NoneType", features.encode, None)
    wrong_type("position 1: expected a FEN or a chess.Board, found NoneType", features.encode_many, [START, None])
    wrong_type("put it into a list", features.encode_many, START)
    wrong_type("expected an iterable of FENs .*, found int", features.encode_many, 3)
    wrong_type("expected a move in UCI notation or a chess.Move, found int", features.delta, START, 3)
    assert issubclass(fsbench.RequestError, fsbench.Error)


def test_positions_and_moves_of_python_chess():
    chess = pytest.importorskip("chess")
    features = fsbench.FeatureSet("half-ka-v2-hm")
    boards = [chess.Board(fen) for fen in FENS]
    many, expected = features.encode_many(boards), features.encode_many(FENS)
    assert all((many[name] == array).all() for name, array in expected.items())
    for found, active in zip(features.encode(boards[1]), features.encode(FENS[1])):
        assert (found == active).all()
    found, delta = features.delta(boards[1], chess.Move.from_uci("e8g8")), features.delta(FENS[1], "e8g8")
    assert all((found[name].added == delta[name].added).all() for name in ("white", "black"))


def test_sets_that_have_names():
    sets = fsbench.feature_sets()
    names = [each["name"] for each in sets]
    assert names == sorted(names) and {"piece", "half-ka-v2-hm"} <= set(names)
    for each in sets:
        assert list(each) == ["name", "about", "num_features"]
        if each["name"] in ("piece", "half-ka-v2-hm"):
            features = fsbench.FeatureSet(each["name"])
            assert (features.num_features, features.about) == (each["num_features"], each["about"])


def test_the_interface_with_types_is_the_packages(tmp_path):
    """But for what pickle calls, and the module that imports torch."""
    pytest.importorskip("mypy")
    (tmp_path / "allowed").write_text("fsbench._fsbench.__all__\nfsbench._torch\n.*\\.__getnewargs_ex__\n")
    command = [sys.executable, "-m", "mypy.stubtest", "fsbench", "--ignore-disjoint-bases", "--concise", "--ignore-unused-allowlist"]
    stubtest = subprocess.run([*command, "--allowlist", "allowed"], cwd=tmp_path, capture_output=True, text=True)
    assert stubtest.returncode == 0, stubtest.stdout + stubtest.stderr


def members():
    """(path, object) of all that `help` shows."""
    for name in fsbench.__all__:
        thing = getattr(fsbench, name)
        yield name, thing
        if isinstance(thing, type):
            for member, value in vars(thing).items():
                if not member.startswith("_"):
                    yield f"{name}.{member}", value


def test_help_says_what_everything_is():
    """With the signature of what is called, in the words of the interface with types."""
    stub = ast.parse((pathlib.Path(fsbench.__file__).parent / "_fsbench.pyi").read_text())
    written = {}
    for node in stub.body:
        for path, each in [("", node), *((f"{node.name}.", each) for each in getattr(node, "body", []))]:
            if isinstance(each, (ast.ClassDef, ast.FunctionDef)):
                written[path + each.name] = ast.get_docstring(each)
    for path, thing in members():
        if path != "__version__":
            assert inspect.getdoc(thing), f"{path} has no help"
            assert path not in written or written[path] == inspect.getdoc(thing), path
    for each in (fsbench.Batches, fsbench.FeatureSet, fsbench.Network, fsbench.save_network, fsbench.results):
        assert inspect.signature(each).parameters


def test_batches_have_the_options_of_the_service(program):
    """But for those of a program, and `progress`."""
    options = re.findall(r"^ +(?:-\w, )?--([a-z-]+)", program("samples-service", "--help"), re.MULTILINE)
    others = {"data", "shm", "no-shuffle", "bench", "format", "help", "quiet", "request", "version"}
    named = {"shuffle", "progress", *(option.replace("-", "_") for option in set(options) - others)}
    assert named == set(inspect.signature(fsbench.Batches).parameters) - {"data", "features"}


def test_other_threads_run_while_a_set_is_examined():
    counted, stop = 0, threading.Event()

    def count():
        nonlocal counted
        while not stop.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    before = counted
    fsbench.FeatureSet("half-ka-v2-hm").define()
    during = counted - before
    stop.set()
    thread.join()
    assert during > 5


def test_ctrl_c_ends_a_search_without_a_limit():
    # Where tests run in the background, SIGINT is ignored from the start. The search among three million features takes
    # seconds on any machine.
    code = """
import fsbench, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
features = fsbench.FeatureSet("square(K) * square(E) * square(P) * role(P) * color(P) for P in pieces")
print("started", flush=True)
features.define(thorough=True)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "started\n"
    time.sleep(0.2)
    assert child.poll() is None
    child.send_signal(signal.SIGINT)
    _, errors = child.communicate(timeout=60)
    assert child.returncode in (1, 130, -signal.SIGINT) and errors.rstrip().endswith("KeyboardInterrupt"), errors


@pytest.mark.parametrize("work", ["features.encode_many(fens)", "network.evaluate(fens)"])
def test_ctrl_c_ends_work_on_many_positions(work, tmp_path, program):
    """The signal's handler runs in the midst of the work: the rest of the work is left. Processor time counts, so that
    other work on the machine does not."""
    if work.startswith("network"):
        program("train", "piece", "--l1", 16, "--epochs", 1, "--out", tmp_path / "run")
    code = f"""
import fsbench, signal, time
features = fsbench.FeatureSet("threats-v16")
network = fsbench.Network({str(tmp_path / "run")!r}) if "network" in {work!r} else None
fens = [{START!r}] * 200_000
start = time.process_time()
{work}
whole = time.process_time() - start
signal.signal(signal.SIGPROF, signal.default_int_handler)
signal.setitimer(signal.ITIMER_PROF, whole / 3)
start = time.process_time()
try:
    {work}
except KeyboardInterrupt:
    print((time.process_time() - start) / whole)
"""
    part = float(subprocess.check_output([sys.executable, "-c", code], text=True, timeout=300))
    assert 0.2 < part < 0.8


def test_a_forked_process_examines_sets():
    features = fsbench.FeatureSet("piece")
    features.define()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if features.define()["num_features"] == 768 else 1)
    assert os.waitpid(child, 0)[1] == 0
