"""Writes small random models of each family and what transformers computes.

Run once on a machine with torch, transformers and safetensors:

    python make_goldens.py

For each family FAMILY/ gets config.json, model.safetensors (float32) and
golden.json: token ids and the logits that transformers' float32 model gives
at some of the rows. The folders are what engine/weights opens.
"""

import json
import pathlib

import torch
import transformers as tf
from safetensors.torch import load_file, save_file

HERE = pathlib.Path(__file__).parent
BASE = dict(
    hidden_size=32, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
    intermediate_size=48, vocab_size=64, max_position_embeddings=512, rms_norm_eps=1e-6,
    bos_token_id=1, eos_token_id=2, pad_token_id=0, attn_implementation="eager",
)


def hybrid():
    layers = ["linear_attention", "linear_attention", "full_attention", "linear_attention"]
    return tf.Qwen3_5TextConfig(**BASE | dict(
        num_hidden_layers=4, layer_types=layers, tie_word_embeddings=False,
        linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=16,
        linear_conv_kernel_dim=4,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25,
                             mrope_section=[1, 1, 0], mrope_interleaved=True)))


FAMILIES = {
    "llama": lambda: tf.LlamaConfig(**BASE | dict(tie_word_embeddings=True)),
    "llama3": lambda: tf.LlamaConfig(**BASE | dict(tie_word_embeddings=False, rope_parameters=dict(
        rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=64))),
    "qwen2": lambda: tf.Qwen2Config(**{k: v for k, v in BASE.items() if k != "head_dim"} | dict(
        hidden_size=64, tie_word_embeddings=True)),
    "qwen3": lambda: tf.Qwen3Config(**BASE | dict(tie_word_embeddings=False)),
    "qwen3yarn": lambda: tf.Qwen3Config(**BASE | dict(tie_word_embeddings=False, rope_parameters=dict(
        rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=32))),
    "qwen3_5": hybrid,
}


def prediction_head(model, config, ids):
    """A random MTP head and its logits for rows 0 … n−2, from transformers' parts.

    transformers leaves the head out; it is a block of full attention on
    fc·[norm(embedding of the next token) ‖ norm(final hidden)], which a model
    of one layer computes when it is given that as its embeddings.
    """
    n = config.hidden_size
    one = type(config)(**config.to_dict() | dict(num_hidden_layers=1, layer_types=["full_attention"]))
    head = tf.AutoModelForCausalLM.from_config(one, dtype=torch.float32).eval()
    norm_e, norm_h = head.model.layers[0].input_layernorm.__class__(n, 1e-6), head.model.layers[0].input_layernorm.__class__(n, 1e-6)
    fc = torch.nn.Linear(2 * n, n, bias=False)
    with torch.no_grad():
        for part in (head, norm_e, norm_h, fc):
            for p in part.parameters():
                p.add_(torch.randn_like(p) * (0.25 if p.dim() > 1 else 0.2))
        hidden = model.model(ids, use_cache=False).last_hidden_state[:, :-1]
        embedded = model.model.embed_tokens(ids[:, 1:])
        x = fc(torch.cat([norm_e(embedded), norm_h(hidden)], dim=-1))
        out = head.model(inputs_embeds=x, use_cache=False).last_hidden_state
        logits = model.lm_head(out)[0]
    tensors = {"mtp.fc.weight": fc.weight, "mtp.pre_fc_norm_embedding.weight": norm_e.weight,
               "mtp.pre_fc_norm_hidden.weight": norm_h.weight, "mtp.norm.weight": head.model.norm.weight}
    for key, p in head.model.layers[0].named_parameters():
        tensors["mtp.layers.0." + key] = p
    return {k: v.detach().clone().contiguous() for k, v in tensors.items()}, torch.cat([logits, logits[-1:]])


for seed, (name, make) in enumerate(FAMILIES.items()):
    torch.manual_seed(seed)
    config = make()
    model = tf.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for key, p in model.named_parameters():
            # Larger than a fresh model's, so that every part shows in the logits.
            p.add_(torch.randn_like(p) * (0.25 if p.dim() > 1 else 0.2))
    ids = torch.randint(3, 64, (1, 100))
    with torch.no_grad():
        logits = model(ids, use_cache=False).logits[0]
    folder = HERE / name
    keep = list(range(0, 99, 9))
    extra, drafted = {}, None
    if name == "qwen3_5":
        extra, drafted = prediction_head(model, config, ids)
    model.save_pretrained(folder, safe_serialization=True)
    (folder / "generation_config.json").unlink(missing_ok=True)
    if extra:
        file = folder / "model.safetensors"
        save_file(load_file(file) | extra, file, metadata={"format": "pt"})
        settings = json.loads((folder / "config.json").read_text()) | {"mtp_num_hidden_layers": 1}
        (folder / "config.json").write_text(json.dumps(settings, indent=2) + "\n")
    golden = dict(transformers=tf.__version__, torch=torch.__version__, tokens=ids[0].tolist(), rows=keep,
                  logits=[[float(f"{x:.7g}") for x in logits[i].tolist()] for i in keep])
    if drafted is not None:
        golden["drafted"] = [[float(f"{x:.7g}") for x in drafted[i].tolist()] for i in keep]
    (folder / "golden.json").write_text(json.dumps(golden) + "\n")
    print(name, "logits from", logits.min().item(), "to", logits.max().item(), "rms", logits.pow(2).mean().sqrt().item())
