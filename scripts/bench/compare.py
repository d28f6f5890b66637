"""Runs `specc-run bench` and mlx-lm in turn and prints medians, and medians of the ratios of each pair.

Usage: compare.py --binary specc-run [--python PYTHON] [--pairs N] [--device cpu|gpu] [--only NAME,...]
                  [--model DIR] [--out FILE]

Without --model the workloads of examples/bench are measured (on a CPU only those marked for it); with it
that model folder in float32. A machine's speed drifts, so only the two runs of a pair are compared with each
other; which of them goes first changes from pair to pair. --out keeps every measurement as a JSON line.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


def bench_folder():
    """The workloads: beside the scripts where they travelled together, else in the repository."""
    beside = HERE / "workloads.json"
    return HERE if beside.exists() else HERE.parent.parent / "examples" / "bench"


def workloads(asked):
    if asked.model:
        return [{"name": asked.model.name, "flags": ["--model", str(asked.model)], "prompt": 128, "decode": 32,
                 "rows": 1, "peer": ["--dtype", "f32"]}]
    folder = bench_folder()
    listed = json.loads((folder / "workloads.json").read_text())
    wanted = set(asked.only.split(",")) if asked.only else None
    chosen = []
    for work in listed:
        if work["name"] not in wanted if wanted else work["cpu"] != (asked.device == "cpu"):
            continue
        flags = ["--config", str(folder / work["config"]), "--dtype", work["dtype"]]
        if work["quantize"]:
            flags += ["--quantize", str(work["quantize"])]
        chosen.append({**work, "flags": flags, "peer": []})
    if not chosen:
        sys.exit(f"no such workload; known are {', '.join(work['name'] for work in listed)}")
    return chosen


def measure(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nexited with {done.returncode}:\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="gpu")
    parser.add_argument("--only", default="")
    parser.add_argument("--model", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    asked = parser.parse_args()
    print("| workload | step ms, specc | step ms, mlx-lm | ratio | prefill tokens/s, specc | mlx-lm | ratio "
          "| build, dispatch, wait ms | operations | peak GB, specc | mlx-lm |")
    print("|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for work in workloads(asked):
        common = work["flags"] + ["--name", work["name"], "--repeat", str(asked.repeat)]
        for key in ("rows", "prompt", "decode"):
            common += [f"--{key}", str(work[key])]
        ours = [asked.binary, "bench", "--json", *common] + ([] if asked.model else ["--synthetic"])
        peer = [asked.python, str(HERE / "peer.py"), "--device", asked.device, *common, *work["peer"]]
        pairs = []
        for turn in range(asked.pairs):
            order = [ours, peer] if turn % 2 == 0 else [peer, ours]
            found = [measure(command) for command in order]
            pairs.append(found if turn % 2 == 0 else found[::-1])
            if asked.out:
                with asked.out.open("a") as out:
                    out.writelines(json.dumps(one) + "\n" for one in found)

        def median(key, of):
            return statistics.median(pair[of][key] for pair in pairs)

        def ratio(key):
            return statistics.median(pair[0][key] / pair[1][key] for pair in pairs)

        split = ", ".join(f"{median(key, 0):.2f}" for key in ("build_ms", "dispatch_ms", "wait_ms"))
        print(f"| {work['name']} | {median('step_ms', 0):.3f} | {median('step_ms', 1):.3f} | {ratio('step_ms'):.2f} "
              f"| {median('prefill_tps', 0):.0f} | {median('prefill_tps', 1):.0f} | {ratio('prefill_tps'):.2f} "
              f"| {split} | {pairs[-1][0]['operations']} "
              f"| {median('peak_gb', 0):.2f} | {median('peak_gb', 1):.2f} |", flush=True)


if __name__ == "__main__":
    main()
