#!/usr/bin/env python3
"""Trains a small network in PyTorch on any feature set, factors included: an example of an external trainer.

    train_pytorch.py half-ka-v2-hm --data games.binpack --l1 64 --epochs 10 --out mine
    fsbench match mine other --nodes 5000 --pairs 300

The network is (features → L1) × 2 → 32 → 1 with clipped ReLU; loss, initial weights, learning rate and data are those of
`fsbench train`. Needs torch and the package of scripts/python; without torch it says so and ends with status 0.
"""

import argparse
import sys
import fsbench

try:
    import torch
except ImportError:
    sys.exit(print("skipped: torch is not installed"))

(SCHEME,) = [scheme for scheme in fsbench.schemes() if scheme["name"] == "stockfish"]


class Network(torch.nn.Module):
    def __init__(self, features, l1):
        super().__init__()
        self.factors, self.virtual = features.factors(), features.num_features
        rows = features.num_features + (self.factors.num_inputs if self.factors else 0)
        # The rows of virtual inputs follow those of the features; exported, a feature's row is the sum of its own.
        self.transformer = torch.nn.EmbeddingBag(rows, l1, mode="sum", include_last_offset=True)
        torch.nn.init.uniform_(self.transformer.weight, -0.005, 0.005)
        torch.nn.init.zeros_(self.transformer.weight[self.virtual:])
        self.bias = torch.nn.Parameter(torch.full((l1,), 0.1))
        self.hidden, self.output = torch.nn.Linear(2 * l1, 32), torch.nn.Linear(32, 1)

    def accumulator(self, indices, offsets):
        sums = self.transformer(torch.from_numpy(indices), torch.from_numpy(offsets))
        if self.factors:
            inputs, starts = self.factors.expand(indices, offsets)
            sums = sums + self.transformer(torch.from_numpy(inputs + self.virtual), torch.from_numpy(starts))
        return sums + self.bias

    def forward(self, batch):
        sides = [self.accumulator(batch[f"{side}_indices"], batch[f"{side}_offsets"]) for side in ("stm", "nstm")]
        output = self.output(self.hidden(torch.cat(sides, dim=1).clamp(0, 1)).clamp(0, 1))
        return SCHEME["score_per_output"] * output.squeeze(1)

    @torch.no_grad()
    def clip(self):
        """Keeps the dense weights within the integers' range."""
        self.hidden.weight.clamp_(-SCHEME["hidden"][0], SCHEME["hidden"][0])
        self.output.weight.clamp_(-SCHEME["output"], SCHEME["output"])

    def weights(self):
        weights = {"ft.weight": self.transformer.weight[: self.virtual], "ft.bias": self.bias}
        if self.factors:
            weights["factor.weight"] = self.transformer.weight[self.virtual:]
        for number, layer in enumerate((self.hidden, self.output)):
            weights |= {f"layers.{number}.weight": layer.weight, f"layers.{number}.bias": layer.bias}
        return weights


parser = argparse.ArgumentParser(description="Train a small network in PyTorch on any feature set.")
parser.add_argument("features", help="a shipped set, a TOML file or an expression")
parser.add_argument("--data", help="games or samples [default: the sample games that come with fsbench]")
parser.add_argument("--out", help="folder for the network")
for name, default in {"batch-size": 4096, "l1": 64, "epochs": 10, "lr": 2e-3, "decay": 0.8, "seed": 0}.items():
    parser.add_argument(f"--{name}", type=type(default), default=default)
arguments = parser.parse_args()
torch.manual_seed(arguments.seed)
batches = fsbench.Batches(
    arguments.data, arguments.features, batch_size=arguments.batch_size, epochs=arguments.epochs, split="train",
    seed=arguments.seed, needs="score",
)
network, losses = Network(batches.features, arguments.l1), []
optimiser = torch.optim.Adam(network.parameters(), lr=arguments.lr)
for batch in batches:
    for group in optimiser.param_groups:
        group["lr"] = arguments.lr * arguments.decay ** batch["epoch"]
    error = torch.sigmoid(network(batch) / 361) - torch.sigmoid(torch.from_numpy(batch["score"]) / 410)
    loss = error.abs().pow(2.6).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    network.clip()
    losses.append(loss.item())
    if len(losses) % 50 == 0:
        print(f"step {len(losses)}: loss {sum(losses[-50:]) / 50:.6f}")
if arguments.out:
    found = fsbench.save_network(arguments.out, batches.features, network.weights(), scheme=SCHEME["name"])
    agree = 100 * found["within_tolerance"]
    print(f"{arguments.out}: {found['shape']}; the integers agree in {agree:.1f}% of {found['positions']} positions")
tenth = max(1, len(losses) // 10)
first, last = (sum(part) / len(part) for part in (losses[:tenth], losses[-tenth:]))
print(f"loss {first:.6f} in the first tenth of the steps, {last:.6f} in the last")
