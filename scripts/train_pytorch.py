#!/usr/bin/env python3
"""Trains a small network in PyTorch on any feature set, factors included: an example of an external trainer.

    train_pytorch.py half-ka-v2-hm --data games.binpack --l1 64 --steps 500

The network is (features → L1) × 2 → 32 → 1 with clipped ReLU; the loss is |σ(out/361) − σ(score/410)|^2.6, that of
`fsbench train`. Needs torch and the package of scripts/python; without torch it says so and ends with status 0.
"""

import argparse
import sys
import fsbench

try:
    import torch
except ImportError:
    sys.exit(print("skipped: torch is not installed"))


class Network(torch.nn.Module):
    def __init__(self, features, l1):
        super().__init__()
        self.factors, self.virtual = features.factors(), features.num_features
        rows = features.num_features + (self.factors.num_inputs if self.factors else 0)
        # The rows of virtual inputs follow those of the features; exported, a feature's row is the sum of its own.
        self.transformer = torch.nn.EmbeddingBag(rows, l1, mode="sum", include_last_offset=True)
        torch.nn.init.uniform_(self.transformer.weight, -0.005, 0.005)
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
        return 600 * self.output(self.hidden(torch.cat(sides, dim=1).clamp(0, 1)).clamp(0, 1)).squeeze(1)


parser = argparse.ArgumentParser(description="Train a small network in PyTorch on any feature set.")
parser.add_argument("features", help="a shipped set, a TOML file or an expression")
parser.add_argument("--data", help="games or samples [default: the sample games that come with fsbench]")
for name, default in {"batch-size": 4096, "l1": 64, "steps": 500, "lr": 1e-3}.items():
    parser.add_argument(f"--{name}", type=type(default), default=default)
arguments = parser.parse_args()
torch.manual_seed(0)
batches = fsbench.Batches(arguments.data, arguments.features, batch_size=arguments.batch_size, epochs=0, needs="score")
network = Network(batches.features, arguments.l1)
optimiser, losses = torch.optim.Adam(network.parameters(), lr=arguments.lr), []
for step, batch in zip(range(1, arguments.steps + 1), batches):
    error = torch.sigmoid(network(batch) / 361) - torch.sigmoid(torch.from_numpy(batch["score"]) / 410)
    loss = error.abs().pow(2.6).mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    losses.append(loss.item())
    if step % 50 == 0:
        print(f"step {step}: loss {sum(losses[-50:]) / 50:.6f}")
tenth = max(1, len(losses) // 10)
first, last = (sum(part) / len(part) for part in (losses[:tenth], losses[-tenth:]))
print(f"loss {first:.6f} in the first tenth of the steps, {last:.6f} in the last")
