"""Makes quantised.safetensors, the oracle of the FP8 and NVFP4 readers and of
the quantiser, with compressed-tensors (pip install torch transformers
compressed-tensors).

For each NAME: NAME.weight… as a checkpoint stores it, and want.NAME as
compressed-tensors decompresses it, F32. source is the matrix they come from.
The ModelOpt dialect differs in names and in storing the reciprocal of the
global scale (compressed_tensors' own converter turns one into the other).
"""

import pathlib

import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.compressors.nvfp4.helpers import unpack_fp4_from_uint8
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from compressed_tensors.quantization.lifecycle.forward import dequantize
from compressed_tensors.quantization.utils import calculate_qparams, generate_gparam
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent


def scheme(**args):
    return QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(type="float", symmetric=True, **args))


def main():
    torch.manual_seed(11)
    large = torch.randn(130, 144) * torch.exp(torch.randn(130, 144))
    source = large[:16].clone()
    source[3, 16:32] = 0
    out = {"source": source}

    nvfp4 = scheme(num_bits=4, strategy="tensor_group", group_size=16, scale_dtype=torch.float8_e4m3fn)
    divisor = generate_gparam(source.min(), source.max())
    grouped = source.unflatten(1, (-1, 16))
    scale, _ = calculate_qparams(grouped.amin(-1), grouped.amax(-1), nvfp4.weights, global_scale=divisor)
    c = BaseCompressor.get_value_from_registry("nvfp4-pack-quantized")
    state = c.compress({"weight": source, "weight_scale": scale, "weight_global_scale": divisor}, nvfp4)
    # As c.decompress does it, but in single precision instead of bfloat16.
    want = dequantize(
        x_q=unpack_fp4_from_uint8(state["weight_packed"], *source.shape, dtype=torch.float32),
        scale=state["weight_scale"].float(),
        args=nvfp4.weights,
        global_scale=divisor,
        dtype=torch.float32,
    )
    torch.testing.assert_close(want, c.decompress(state, nvfp4)["weight"].float(), rtol=1e-2, atol=0)
    out |= {f"packed.{k}": v for k, v in state.items()} | {"want.packed": want}
    out |= {
        "modelopt.weight": state["weight_packed"].clone(),
        "modelopt.weight_scale": state["weight_scale"].clone(),
        "modelopt.weight_scale_2": (1 / divisor).reshape(()),
        "modelopt.input_scale": torch.tensor(0.5),
        "want.modelopt": want.clone(),
    }

    c = BaseCompressor.get_value_from_registry("float-quantized")

    def fp8(name, weight, low, high, **args):
        s = scheme(num_bits=8, **args)
        scale, _ = calculate_qparams(low, high, s.weights)
        scale = scale.bfloat16().float()
        state = c.compress({"weight": weight, "weight_scale": scale}, s)
        out[f"{name}.weight"] = state["weight"]
        out[f"{name}.weight_scale"] = state["weight_scale"]
        out[f"want.{name}"] = c.decompress(state, s)["weight"].float()

    fp8("row", source, source.amin(1, keepdim=True), source.amax(1, keepdim=True), strategy="channel")
    fp8("whole", source, source.min().reshape(1), source.max().reshape(1), strategy="tensor")
    padded = torch.zeros(256, 256)
    padded[:130, :144] = large
    blocks = padded.reshape(2, 128, 2, 128)
    fp8("block", large, blocks.amin((1, 3)), blocks.amax((1, 3)), strategy="block", block_structure=[128, 128])
    save_file({k: v.contiguous() for k, v in out.items()}, HERE / "quantised.safetensors")


main()
