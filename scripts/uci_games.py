#!/usr/bin/env python3
"""Play games between two UCI engines through python-chess and count losses on time and illegal moves.

    pip install chess
    python3 scripts/uci_games.py --games 200 --milliseconds 100 "fsbench uci --net net.nnue" stockfish

Openings are random moves, drawn by seed, from the initial position or, with --chess960 and --double-chess960, from
start positions of Chess960; the engines then need the option UCI_Chess960. A move is late if it takes longer than the limit and the margin. Exit status 1
if the first engine was late, made an illegal move, or died.
"""

import argparse
import random
import shlex
import sys
import time
from collections import Counter

import chess
import chess.engine


def start_position(rng: random.Random, variant: str) -> chess.Board:
    """A board of standard chess, of Chess960, or of Chess960 in which the sides start differently."""
    if variant == "standard":
        return chess.Board()
    white = chess.Board.from_chess960_pos(rng.randrange(960))
    black = chess.Board.from_chess960_pos(rng.randrange(960)) if variant == "double" else white
    ranks = black.board_fen().split("/")[:4] + white.board_fen().split("/")[4:]
    return chess.Board("/".join(ranks) + " w KQkq - 0 1", chess960=True)


def random_opening(rng: random.Random, plies: int, variant: str) -> chess.Board:
    while True:
        board = start_position(rng, variant)
        for _ in range(plies):
            board.push(rng.choice(list(board.legal_moves)))
            if board.is_game_over():
                break
        else:
            return board


def play(board: chess.Board, engines: list, limits: list, margin: float, longest: list) -> str:
    """Plays a game; engines[0] has White. The outcome is a result, or "late 0", "illegal 0" with the engine's index."""
    game = object()
    # The first search of a game is preceded by `ucinewgame` and `isready`; those are not part of the move's time.
    for engine in engines:
        engine.analyse(board, chess.engine.Limit(nodes=1), game=game)
    while not board.is_game_over(claim_draw=True):
        side = 0 if board.turn else 1
        start = time.monotonic()
        try:
            move = engines[side].play(board, limits[side], game=game).move
        except chess.engine.EngineError as error:
            print(error, file=sys.stderr)
            return f"illegal {side}"
        taken = time.monotonic() - start
        longest[side] = max(longest[side], taken)
        if limits[side].time and taken > limits[side].time + margin:
            return f"late {side}"
        board.push(move)
    return board.result(claim_draw=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs=2, metavar="ENGINE", help="command of an engine")
    parser.add_argument("--games", type=int, default=200)
    parser.add_argument("--milliseconds", type=float, default=100, help="time per move of the first engine")
    parser.add_argument("--nodes", type=int, help="nodes per move of the second engine, in place of the time")
    parser.add_argument("--margin", type=float, default=10, help="milliseconds that a move may be late")
    parser.add_argument("--seed", type=int, default=1)
    variant = parser.add_mutually_exclusive_group()
    variant.add_argument("--chess960", dest="variant", action="store_const", const="chess960", default="standard")
    variant.add_argument("--double-chess960", dest="variant", action="store_const", const="double")
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    timed = chess.engine.Limit(time=arguments.milliseconds / 1000)
    limits = [timed, chess.engine.Limit(nodes=arguments.nodes) if arguments.nodes else timed]
    engines = [chess.engine.SimpleEngine.popen_uci(shlex.split(command)) for command in arguments.engines]
    longest, outcomes = [0.0, 0.0], Counter()
    for number in range(arguments.games):
        # The first engine has White in even games; both games of a pair have the same opening.
        if number % 2 == 0:
            opening = random_opening(rng, 8, arguments.variant)
        order = [0, 1] if number % 2 == 0 else [1, 0]
        times = [longest[side] for side in order]
        outcome = play(
            opening.copy(), [engines[side] for side in order], [limits[side] for side in order], arguments.margin / 1000, times
        )
        for side, taken in zip(order, times):
            longest[side] = taken
        kind, _, side = outcome.partition(" ")
        if side:
            outcomes[f"engine {order[int(side)] + 1} {kind}"] += 1
        elif outcome == "1/2-1/2":
            outcomes["draw"] += 1
        else:
            winner = order[0] if outcome == "1-0" else order[1]
            outcomes[f"engine {winner + 1} wins"] += 1
    for engine in engines:
        engine.quit()
    print(f"{arguments.games} games: {dict(sorted(outcomes.items()))}")
    print(f"longest move: {longest[0] * 1000:.1f} ms and {longest[1] * 1000:.1f} ms")
    return 1 if outcomes["engine 1 late"] + outcomes["engine 1 illegal"] else 0


if __name__ == "__main__":
    sys.exit(main())
