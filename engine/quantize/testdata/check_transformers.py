"""Loads a quantised folder (argument 1) with transformers and compressed-
tensors and compares each weight, as they decompress it, with the safetensors
file given as argument 2 (F32, the names of the unquantised model). Prints the
number of weights that agree to bfloat16 and exits 1 if one does not."""

import sys

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

# Not with run_compressed=False: transformers 5 then takes one format for all
# layers, whatever the config groups say.
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.bfloat16)
# The first forward pass decompresses all modules.
logits = model(torch.arange(1, 9)[None]).logits
have = model.state_dict()
want = load_file(sys.argv[2])
wrong = 0
for name, w in want.items():
    if name not in have:
        print("missing", name)
        wrong += 1
        continue
    error = (have[name].float() - w).abs()
    # Two roundings to bfloat16 at most: the scale's and the value's.
    if not bool((error <= w.abs() * 2**-7).all()):
        print("differs", name, float(error.max()))
        wrong += 1
if not bool(torch.isfinite(logits).all()):
    print("logits are not finite")
    wrong += 1
print(len(want) - wrong, "of", len(want), "agree")
sys.exit(wrong > 0)
