#!/usr/bin/env python3
"""Trains a small network in PyTorch on fsbench's samples-service: an example of an external trainer.

    train_pytorch.py --l1 64 --steps 500 -- fsbench samples-service half-ka-v2-hm --data games.binpack --epochs 0

The network is (features → L1) × 2 → 32 → 1 with clipped ReLU; the feature transformer is one `EmbeddingBag` over the two
csr arrays of a batch. The loss is |σ(out/361) − σ(score/410)|^2.6, that of `fsbench train`. If torch is not installed, the
script says so and ends with status 0.

Needs torch and numpy; the service's protocol is described in src/service/PROTOCOL.md.
"""

import argparse
import sys
import time

try:
    import torch
except ImportError:
    torch = None

SCORE_SCALE = 410.0
OUTPUT_SCALE = 361.0
POWER = 2.6
# Centipawns per output of 1.0.
NNUE2SCORE = 600.0


def network(features, l1):
    """The feature transformer and the dense layers."""

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.transformer = torch.nn.EmbeddingBag(features, l1, mode="sum", include_last_offset=True)
            torch.nn.init.uniform_(self.transformer.weight, -0.005, 0.005)
            self.bias = torch.nn.Parameter(torch.full((l1,), 0.1))
            self.hidden = torch.nn.Linear(2 * l1, 32)
            self.output = torch.nn.Linear(32, 1)

        def forward(self, sides):
            accumulators = [self.transformer(indices, offsets) + self.bias for indices, offsets in sides]
            values = torch.cat(accumulators, dim=1).clamp(0, 1)
            return self.output(self.hidden(values).clamp(0, 1)).squeeze(1) * NNUE2SCORE

    return Network()


def tensors(batch):
    """The features of both perspectives and the scores of a batch, copied out of shared memory."""
    sides = [
        (torch.tensor(batch[f"{side}_indices"]), torch.tensor(batch[f"{side}_offsets"])) for side in ("stm", "nstm")
    ]
    return sides, torch.tensor(batch["score"])


def train(samples, arguments):
    """Trains and prints the progress; returns the mean losses of the first and the last tenth of the steps."""
    description = samples.description
    if description["method"] != "eval" or description["layout"] != "csr":
        sys.exit("train_pytorch.py: ask the service for --method eval --layout csr")
    torch.manual_seed(arguments.seed)
    model = network(description["num_features"], arguments.l1)
    optimiser = torch.optim.Adam(model.parameters(), lr=arguments.lr)
    losses, positions, start = [], 0, time.monotonic()
    for step, batch in enumerate(samples, 1):
        sides, scores = tensors(batch)
        known = ~scores.isnan()
        if known.any():
            error = torch.sigmoid(model(sides) / OUTPUT_SCALE) - torch.sigmoid(scores / SCORE_SCALE)
            loss = error[known].abs().pow(POWER).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        positions += batch["positions"]
        if step % 50 == 0 or step == arguments.steps:
            rate = positions / (time.monotonic() - start)
            print(f"step {step}: loss {sum(losses[-50:]) / len(losses[-50:]):.6f}, {rate:.0f} positions/s", flush=True)
        if step == arguments.steps:
            break
    if not losses:
        sys.exit("train_pytorch.py: no batch had a score")
    tenth = max(1, len(losses) // 10)
    return sum(losses[:tenth]) / tenth, sum(losses[-tenth:]) / tenth


def main():
    parser = argparse.ArgumentParser(description="Train a small network on a samples-service with PyTorch.")
    parser.add_argument("--l1", type=int, default=64, metavar="N", help="accumulator width (default 64)")
    parser.add_argument("--steps", type=int, default=500, metavar="N", help="maximum number of batches (default 500; 0 = all)")
    parser.add_argument("--lr", type=float, default=1e-3, help="learning rate (default 0.001)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- fsbench samples-service …")
    arguments = parser.parse_args()
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        parser.error("give the service's command line after --")
    if torch is None:
        print("skipped: torch is not installed")
        return
    from samples_client import Samples, ServiceError

    try:
        with Samples(command) as samples:
            first, last = train(samples, arguments)
    except ServiceError as error:
        sys.exit(f"train_pytorch.py: {error}")
    print(f"loss {first:.6f} in the first tenth of the steps, {last:.6f} in the last")


if __name__ == "__main__":
    main()
