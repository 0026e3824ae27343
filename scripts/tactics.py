#!/usr/bin/env python3
"""Solve a suite of tactical positions (EPD with bm or am) with a UCI engine and report the number solved.

    pip install chess
    python3 scripts/tactics.py wac.epd --seconds 1 -- fsbench uci --net net.nnue
"""

import argparse
import sys

import chess
import chess.engine


def is_solved(operations: dict, move: chess.Move) -> bool:
    best, avoid = operations.get("bm", []), operations.get("am", [])
    return move not in avoid and (not best or move in best)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", help="EPD file")
    parser.add_argument("--seconds", type=float, help="time per position")
    parser.add_argument("--nodes", type=int, help="nodes per position")
    parser.add_argument("engine", nargs="+", help="command of the engine")
    arguments = parser.parse_args()
    if not arguments.seconds and not arguments.nodes:
        parser.error("--seconds or --nodes is needed")
    limit = chess.engine.Limit(time=arguments.seconds, nodes=arguments.nodes)
    solved = total = 0
    with chess.engine.SimpleEngine.popen_uci(arguments.engine) as engine, open(arguments.suite) as suite:
        for line in filter(str.strip, suite):
            board, operations = chess.Board.from_epd(line)
            move = engine.play(board, limit, game=object()).move
            total += 1
            if is_solved(operations, move):
                solved += 1
            else:
                print(f"{operations.get('id', total)}: {board.san(move)} in {board.fen()}", file=sys.stderr)
    print(f"{solved} of {total} solved")


if __name__ == "__main__":
    main()
