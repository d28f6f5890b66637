#!/usr/bin/env python3
"""Makes a parity case: a tiny random model of a given config.json and what mlx-lm computes from it.

    python make_case.py CONFIG.json OUT_DIR [--seed N] [--bits B --group-size G] [--dtype float32|bfloat16|float16]
    python make_case.py CONFIG.json OUT_DIR --fp8 CHECKPOINT.safetensors

With `--fp8` the weights are those of a checkpoint in its original layout, matrices as floats of 8 bits with a scale for
each block of 128 by 128, which mlx-lm makes bfloat16.

Needs mlx-lm 0.32.2 with MLX 0.32.2 (`pip install mlx-lm==0.32.2 mlx-cpu==0.32.2` or their like).
"""

import argparse
import importlib
import json
import math
import shutil
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten, tree_map_with_path
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import MODEL_REMAPPING

SCHEDULE = [9, 7] + [1] * 8


def build(config, seed, dtype):
    """A model with weights that move the logits: matrices of unit gain, norms about 1."""
    name = MODEL_REMAPPING.get(config["model_type"], config["model_type"])
    arch = importlib.import_module(f"mlx_lm.models.{name}")
    model = arch.Model(arch.ModelArgs.from_dict(json.loads(json.dumps(config))))
    mx.random.seed(seed)

    def draw(path, old):
        noise = mx.random.normal(old.shape)
        if old.ndim >= 2:
            value = noise * old.shape[-1] ** -0.5 * 1.4
        elif path.endswith("bias"):
            value = noise * 0.1
        else:
            value = old + noise * 0.1
        return value.astype(dtype)

    model.update(tree_map_with_path(draw, model.parameters()))
    # A head that the model would tie when its tensor is absent.
    text = getattr(model, "language_model", model)
    if config.get("tie_word_embeddings", text_config(config).get("tie_word_embeddings")) and "lm_head" in text:
        text.tie_word_embeddings = True
        text.pop("lm_head")
    model.eval()
    mx.eval(model.parameters())
    return model


def eight_bits(checkpoint):
    """The tensors of a checkpoint with the matrices of its layers in blocks of 8-bit floats."""
    out = {}
    for name, value in mx.load(str(checkpoint)).items():
        kept = value.ndim != 2 or ".layers." not in name or name.endswith("mlp.gate.weight")
        if kept:
            out[name] = value
            continue
        scales = mx.zeros([math.ceil(n / 128) for n in value.shape])
        packed = mx.zeros(value.shape, dtype=mx.uint8)
        for r in range(scales.shape[0]):
            for c in range(scales.shape[1]):
                block = (slice(128 * r, 128 * (r + 1)), slice(128 * c, 128 * (c + 1)))
                scales[r, c] = mx.abs(value[block]).max() / 448
                packed[block] = mx.to_fp8(value[block] / scales[r, c])
        out[name], out[f"{name}_scale_inv"] = packed, scales
    return out


def save_eight_bits(path, tensors):
    """MLX writes 8-bit floats as bytes: the header says what they are."""
    mx.save_safetensors(str(path), tensors, metadata={"format": "pt"})
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = data[8:end].replace(b'"dtype":"U8"', b'"dtype":"F8_E4M3"')
    header += b" " * (-len(header) % 8)
    path.write_bytes(len(header).to_bytes(8, "little") + header + data[end:])


def text_config(config):
    return config.get("text_config", config)


def results(model, vocabulary):
    ids = mx.random.randint(0, vocabulary, (24,)).astype(mx.int32)
    rows = mx.random.randint(0, vocabulary, (2, 10)).astype(mx.int32)
    out = {"ids": ids, "batch_ids": rows}
    out["logits"] = model(ids[None])[0].astype(mx.float32)
    out["batch_logits"] = model(rows).astype(mx.float32)
    cache, parts, at = make_prompt_cache(model), [], 0
    for size in SCHEDULE:
        parts.append(model(ids[None, at : at + size], cache=cache)[0].astype(mx.float32))
        mx.eval(parts[-1])
        at += size
    out["chunked"] = mx.concatenate(parts)
    cache, greedy = make_prompt_cache(model), []
    last = model(ids[None], cache=cache)[0, -1]
    margin = float("inf")
    for _ in range(12):
        best = mx.topk(last.astype(mx.float32), 2)
        margin = min(margin, abs((best[0] - best[1]).item()))
        greedy.append(mx.argmax(last).item())
        last = model(mx.array([[greedy[-1]]]), cache=cache)[0, -1]
    out["greedy"] = mx.array(greedy, dtype=mx.int32)
    mx.eval(out)
    return out, margin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("config", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--bits", type=int)
    parser.add_argument("--group-size", type=int, default=32)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--fp8", type=Path)
    args = parser.parse_args()
    mx.set_default_device(mx.cpu)
    config = json.loads(args.config.read_text())
    model = build(config, args.seed, getattr(mx, args.dtype))
    if args.fp8:
        stored = eight_bits(args.fp8)
        model.load_weights(list(model.sanitize(dict(stored)).items()))
        mx.eval(model.parameters())
        args.dtype = "bfloat16"
        config["quantization_config"] = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]}
    if args.bits:
        predicate = getattr(model, "quant_predicate", None)
        if predicate:
            nn.quantize(model, args.group_size, args.bits, class_predicate=lambda p, m: hasattr(m, "to_quantized") and predicate(p, m))
        else:
            nn.quantize(model, args.group_size, args.bits)
        config["quantization"] = {"group_size": args.group_size, "bits": args.bits, "mode": "affine"}
    vocabulary = config.get("vocab_size") or config["text_config"]["vocab_size"]
    arrays, margin = results(model, vocabulary)
    bound = {"float32": 2e-4, "float16": 5e-3, "bfloat16": 6e-2}[args.dtype]
    case = {
        "case": args.out.name,
        "model_type": config["model_type"],
        "features": ["quant:affine"] if args.bits else [],
        "weights": args.dtype,
        "tolerance": {"logits": bound, "chunked": bound, "batch_logits": bound},
        "greedy_exact": margin > 1e-3 and args.dtype == "float32",
        "measured": {"greedy_margin": margin},
    }
    shutil.rmtree(args.out, ignore_errors=True)
    args.out.mkdir(parents=True)
    (args.out / "config.json").write_text(json.dumps(config, indent=1))
    (args.out / "case.json").write_text(json.dumps(case, indent=1))
    weights = args.out / "model.safetensors"
    if args.fp8:
        save_eight_bits(weights, stored)
    else:
        mx.save_safetensors(str(weights), dict(tree_flatten(model.parameters())), metadata={"format": "mlx"})
    mx.save_safetensors(str(args.out / "expected.safetensors"), arrays)
    print(f"{args.out.name}: logits up to {mx.abs(arrays['logits']).max().item():.2f}, greedy margin {margin:.4f}")


if __name__ == "__main__":
    main()
