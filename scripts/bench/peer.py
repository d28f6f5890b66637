"""Measures mlx-lm the way `specc-run bench` measures us, and prints one JSON object.

Usage: peer.py (--config FILE | --model DIR) [--dtype bf16] [--quantize BITS] [--rows N] [--prompt N]
               [--decode N] [--repeat N] [--name NAME] [--device cpu|gpu]

With --config the weights are random; with --model they are the folder's, quantised ones turned into
floats of --dtype. Prefill is one prompt up to its first token, read in chunks of 2048 with the last token
alone; decoding is a greedy loop that is always one step ahead of the reader. The first run warms up.
"""
import argparse
import importlib
import json
import pathlib
import statistics
import time

import mlx.core as mx
import mlx.nn as nn
import mlx.utils
from mlx_lm.models.cache import make_prompt_cache

DTYPES = {"bf16": mx.bfloat16, "f16": mx.float16, "f32": mx.float32}


def arguments():
    parser = argparse.ArgumentParser()
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--config", type=pathlib.Path)
    source.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--quantize", type=int)
    for name, default in (("rows", 1), ("prompt", 512), ("decode", 128), ("repeat", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--name")
    parser.add_argument("--device", choices=("cpu", "gpu"))
    return parser.parse_args()


def dense_weights(folder, config, dtype):
    """The folder's weights as floats."""
    stored = {}
    for file in sorted(folder.glob("*.safetensors")):
        stored.update(mx.load(str(file)))
    how = config.get("quantization", {})
    weights = {}
    for name, value in stored.items():
        module, _, part = name.rpartition(".")
        if part in ("scales", "biases") and f"{module}.weight" in stored:
            continue
        if f"{module}.scales" in stored:
            own = how.get(module) if isinstance(how.get(module), dict) else how
            value = mx.dequantize(value, stored[f"{module}.scales"], stored.get(f"{module}.biases"),
                                  group_size=own["group_size"], bits=own["bits"], mode=own.get("mode", "affine"))
        weights[name] = value.astype(dtype) if mx.issubdtype(value.dtype, mx.floating) else value
    return weights


def build(asked):
    dtype = DTYPES[asked.dtype]
    config = json.loads((asked.config or asked.model / "config.json").read_text())
    family = importlib.import_module(f"mlx_lm.models.{config['model_type']}")
    model = family.Model(family.ModelArgs.from_dict(config))
    if asked.model:
        weights = dense_weights(asked.model, config, dtype)
        if hasattr(model, "sanitize"):
            weights = model.sanitize(weights)
        model.load_weights(list(weights.items()))
    else:
        model.set_dtype(dtype)
        if asked.quantize:
            nn.quantize(model, group_size=64, bits=asked.quantize)
    mx.eval(model.parameters())
    return model, config["vocab_size"]


def once(model, vocabulary, asked):
    """Seconds of reading the prompt and of one decoding step."""
    cache = make_prompt_cache(model)
    ids = mx.random.randint(0, vocabulary, (asked.rows, asked.prompt))
    mx.eval(ids)

    def following(tokens):
        return mx.argmax(model(tokens, cache=cache)[:, -1, :], axis=-1)

    began = time.perf_counter()
    at = 0
    while at < asked.prompt - 1:
        end = min(at + 2048, asked.prompt - 1)
        model(ids[:, at:end], cache=cache)
        mx.eval([layer.state for layer in cache])
        mx.clear_cache()
        at = end
    token = following(ids[:, -1:])
    mx.eval(token)
    first = time.perf_counter()
    for _ in range(asked.decode):
        ahead = following(token[:, None])
        mx.async_eval(ahead)
        mx.eval(token)
        token = ahead
    mx.eval(token)
    return first - began, (time.perf_counter() - first) / asked.decode


def main():
    asked = arguments()
    if asked.device:
        mx.set_default_device(getattr(mx, asked.device))
    model, vocabulary = build(asked)
    mx.clear_cache()
    mx.reset_peak_memory()
    runs = [once(model, vocabulary, asked) for _ in range(asked.repeat + 1)][1:]
    prefill, step = (statistics.median(column) for column in zip(*runs))
    weights = sum(value.nbytes for _, value in mlx.utils.tree_flatten(model.parameters()))
    print(json.dumps({
        "engine": "mlx-lm",
        "workload": asked.name or (asked.config or asked.model).stem,
        "rows": asked.rows,
        "prompt": asked.prompt,
        "prefill_ms": round(prefill * 1e3, 2),
        "prefill_tps": round(asked.rows * asked.prompt / prefill, 1),
        "step_ms": round(step * 1e3, 4),
        "decode_tps": round(asked.rows / step, 1),
        "peak_gb": round(mx.get_peak_memory() / 1e9, 3),
        "weights_gb": round(weights / 1e9, 3),
    }))


if __name__ == "__main__":
    main()
