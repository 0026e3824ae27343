#!/usr/bin/env python3
"""Replay the games of PGN files with python-chess, Chess960 too, and count what is wrong with them.

    pip install chess
    fsbench match net uci:stockfish --chess960 --nodes 2000 --pairs 100 --out m
    python3 scripts/replay_games.py m/games.pgn

Prints the numbers of games, moves and castlings. Exit status 1 if a move is illegal, a file holds no game, or a game that
ended on the board has another result than the board's.
"""

import sys
from collections import Counter

import chess.pgn


def replay(path: str, counts: Counter) -> None:
    with open(path, encoding="utf-8") as file:
        while game := chess.pgn.read_game(file):
            counts["games"] += 1
            board = game.board()
            counts["games of Chess960"] += board.chess960
            for error in game.errors:
                counts["errors"] += 1
                print(f"{path}, game {counts['games']}: {error}", file=sys.stderr)
            for move in game.mainline_moves():
                counts["moves"] += 1
                counts["castlings"] += board.is_castling(move)
                board.push(move)
            outcome = board.outcome()
            if outcome and outcome.result() != game.headers["Result"]:
                counts["errors"] += 1
                print(f"{path}, game {counts['games']}: {outcome.result()} on the board", file=sys.stderr)


def main() -> int:
    counts = Counter({"games": 0, "errors": 0})
    for path in sys.argv[1:]:
        replay(path, counts)
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return 0 if counts["games"] and not counts["errors"] else 1


if __name__ == "__main__":
    sys.exit(main())
