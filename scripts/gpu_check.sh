#!/usr/bin/env bash
# Checks fsbench's training on this machine's NVIDIA GPU against its own on the CPU, and measures both, in about five
# minutes. Writes results/gpu/CARD.json and the tables of all cards, results/gpu/README.md.
#
#   scripts/gpu_check.sh PROGRAM DATA --device emulated --trial    tries all of it in a minute on a machine without a GPU
#   scripts/gpu_check.sh PROGRAM DATA [OPTION…]    PROGRAM is fsbench, with fsbench-tch beside it; DATA a binpack or .fsd
#                                                  file for eval and pqr; options: scripts/gpu_check.py --help
#
# The programs may come from another machine: fsbench-tch runs with the libtorch of the PyTorch 2.11 that `python3`
# imports, or with the one whose folder of libraries FSBENCH_LIBTORCH_CUDA names.
set -euo pipefail
scripts=$(dirname "${BASH_SOURCE[0]}")

# Found without importing torch, which takes seconds.
torch=$(python3 -c 'from importlib.util import find_spec
torch = find_spec("torch")
print(torch.submodule_search_locations[0] if torch else "")')
libraries=${FSBENCH_LIBTORCH_CUDA:-${torch:+$torch/lib}}
if [ -n "$libraries" ]; then
  export FSBENCH_LIBTORCH_CUDA=$libraries
  export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
exec python3 "$scripts/gpu_check.py" "$@"
