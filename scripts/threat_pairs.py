#!/usr/bin/env python3
"""Which threats of threats-v16 are active in real games, and what each kind costs a move.

    scripts/threat_pairs.py --data GAMES [--games N] [--fsbench PROGRAM] [--out results/threat-pairs]

For every role of the attacker and of the victim, a definition with these threats alone is measured by
`fsbench measure updates`: active features a perspective, and rows added and removed a move and perspective. Writes
threat-pairs.csv and threat-pairs.md; the sums over all pairs are those of threats-v16.
"""

import argparse
import csv
import json
import pathlib
import subprocess

ROLES = ["pawn", "knight", "bishop", "rook", "queen"]
VICTIMS = {
    "pawn": ["knight", "rook"],
    "knight": ROLES,
    "bishop": ["pawn", "knight", "bishop", "rook"],
    "rook": ["pawn", "knight", "bishop", "rook"],
    "queen": ROLES,
}


def definition(attacker, victim):
    """The threats of one kind, by own and by enemy attackers."""
    block = (
        f"color(P) * color(T) * role(T, {victim}) * reach(P, T, {attacker}) for P in pieces, T in targets(P)"
    )
    # Of an attack that goes both ways, threats-v16 has one direction.
    return block + (" if square(P) > square(T)" if attacker == victim else "")


def measure(arguments, attacker, victim):
    path = pathlib.Path(arguments.out) / "definition.toml"
    path.write_text(f'mirror = "king-left"\nfeatures = "{definition(attacker, victim)}"\n')
    command = [arguments.fsbench, "measure", "updates", str(path), "--data", arguments.data, "--format", "json"]
    if arguments.games:
        command += ["--games", str(arguments.games)]
    record = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    path.unlink()
    mean = record["mean"]
    return {
        "attacker": attacker,
        "victim": victim,
        "features": record["num_features"],
        "positions": record["positions"],
        "active": record["active_mean"],
        "added": mean["added"],
        "removed": mean["removed"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="games in any format that fsbench reads")
    parser.add_argument("--games", type=int, help="read only the first N games")
    parser.add_argument("--fsbench", default="fsbench", help="the program")
    parser.add_argument("--out", default="results/threat-pairs", help="folder of the tables")
    arguments = parser.parse_args()
    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    rows = [measure(arguments, attacker, victim) for attacker, victims in VICTIMS.items() for victim in victims]
    with open(out / "threat-pairs.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    total = {key: sum(row[key] for row in rows) for key in ("features", "active", "added", "removed")}
    lines = [
        "# Threats by attacker and victim",
        "",
        f"threats-v16 over {rows[0]['positions']:,} positions of {pathlib.Path(arguments.data).name}: active features a"
        " perspective, and rows added and removed a move and perspective (an own king that crosses to the other half"
        " included). Made by `scripts/threat_pairs.py`.",
        "",
        "| attacker | victim | features | active | share | added | removed | rows a move per active feature |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in sorted(rows, key=lambda row: -row["active"]):
        rate = (row["added"] + row["removed"]) / row["active"] if row["active"] else 0.0
        lines.append(
            f"| {row['attacker']} | {row['victim']} | {row['features']:,} | {row['active']:.3f} |"
            f" {100 * row['active'] / total['active']:.1f}% | {row['added']:.3f} | {row['removed']:.3f} | {rate:.2f} |"
        )
    lines.append(
        f"| all | | {total['features']:,} | {total['active']:.3f} | 100% | {total['added']:.3f} |"
        f" {total['removed']:.3f} | {(total['added'] + total['removed']) / total['active']:.2f} |"
    )
    (out / "threat-pairs.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
