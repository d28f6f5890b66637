#!/usr/bin/env python3
"""Makes a parity case: a tiny random model of a given config.json and what mlx-lm computes from it.

    python make_case.py CONFIG.json OUT_DIR [--seed N] [--bits B --group-size G] [--dtype float32|bfloat16|float16]

Needs mlx-lm 0.32.2 with MLX 0.32.2 (`pip install mlx-lm==0.32.2 mlx-cpu==0.32.2` or their like).
"""

import argparse
import importlib
import json
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
    args = parser.parse_args()
    mx.set_default_device(mx.cpu)
    config = json.loads(args.config.read_text())
    model = build(config, args.seed, getattr(mx, args.dtype))
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
    mx.save_safetensors(str(args.out / "model.safetensors"), dict(tree_flatten(model.parameters())), metadata={"format": "mlx"})
    mx.save_safetensors(str(args.out / "expected.safetensors"), arrays)
    print(f"{args.out.name}: logits up to {mx.abs(arrays['logits']).max().item():.2f}, greedy margin {margin:.4f}")


if __name__ == "__main__":
    main()
