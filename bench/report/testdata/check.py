#!/usr/bin/env python3
"""Recomputes a report's figures from the raw events of its JSON and compares.

    check.py BASE        reads BASE.json and, where they exist, BASE.csv, BASE-summary.csv,
                         BASE-vllm.json, BASE-benchstat.txt, BASE.md and BASE.pdf.txt
                         (the text of the PDF: pdftotext -layout)

Only the Python standard library, only the definitions of docs/definitions.md: it shares no code with
the program. It prints what differs and exits 1 if anything does.
"""
import csv
import json
import math
import os
import re
import sys

wrong = []


def same(what, got, want, tolerance=1e-9):
    """got is the report's figure, want ours; None is 'not measured'."""
    if got is None or want is None:
        ok = got is None and want is None
    else:
        ok = abs(got - want) <= tolerance * max(1.0, abs(want)) + 1e-12
    if not ok:
        wrong.append(f"{what}: the report says {got}, the events say {want}")


def percentile(values, q):
    """Hyndman and Fan's type 7."""
    v = sorted(values)
    h = (len(v) - 1) * q
    k = math.floor(h + 1e-9)
    f = h - k
    return v[k] if f <= 1e-9 else v[k] + f * (v[k + 1] - v[k])


def supported(n, q):
    return n * min(q, 1 - q) >= 1 - 1e-9


def tokens_of(chunks, end, claimed, source):
    """tokens(i), by the first rule of definitions.md that applies."""
    n = len(chunks["text"])
    usage, exact = chunks["usage"], chunks["exact"]
    u = ((end or {}).get("usage") or {}).get("completion", -1)
    if None not in usage and usage == sorted(usage) and usage[-1] > 0:
        return [b - a for a, b in zip([0] + usage, usage)]
    if None not in exact and sum(exact) > 0:
        return exact
    if source == "tokenizer":
        return claimed  # the tokenizer is not here
    size = [len(t.encode()) for t in chunks["text"]]
    if u > 0:
        if n == u or (n == u - 1 and end.get("finish") != "length"):
            return [1] * n
        # An estimate: shared out by bytes. The total is exact; each share is within a token or two.
        if sum(claimed) != min(u, sum(size)):
            wrong.append(f"request {chunks['request']}: {sum(claimed)} tokens shared, usage says {u}")
        return claimed
    if not sum(size) / 4 - 1 <= sum(claimed) <= sum(size) / 4 + n:
        wrong.append(f"request {chunks['request']}: {sum(claimed)} tokens from {sum(size)} bytes of text")
    return claimed


def measure(raw, chunks, end, claimed, source):
    m = {"start": raw["start"] / 1e9, "step": raw["step"], "tokens": 0, "gaps": [], "at": [], "per": []}
    for k in "ttft ttfo ttst e2e tpot rate max_gap itl".split():
        m[k] = None
    if not chunks:
        return m
    stamps = chunks["user"] if None in chunks["kernel"] else chunks["kernel"]
    c = [t / 1e9 for t in stamps]
    tok = tokens_of(chunks, end, claimed, source)
    t0, total = m["start"], sum(tok)
    m.update(tokens=total, at=c, per=tok, ttft=c[0] - t0, e2e=c[-1] - t0, gaps=[b - a for a, b in zip(c, c[1:])])
    m["ttfo"] = next((t - t0 for t, ch in zip(c, chunks["channel"]) if ch != "reasoning"), None)
    decode = c[-1] - c[0]
    if m["gaps"]:
        m["ttst"], m["max_gap"] = m["gaps"][0], max(m["gaps"])
    if decode > 0 and total > tok[0]:
        m["rate"] = (total - tok[0]) / decode
        if source != "estimate":
            m["itl"] = decode / (total - tok[0])
    if decode > 0 and total > 1:
        m["tpot"] = decode / (total - 1)
    return m


def main(base):
    report = json.load(open(base + ".json"))
    events = report["events"]
    ends = {e["request"]: e for e in events["ends"]}
    chunks = {c["request"]: c for c in events["chunks"]}
    claimed = {r["request"]: r for r in report["requests"]}
    ours = {}
    for raw in events["requests"]:
        n, r = raw["number"], claimed[raw["number"]]
        m = ours[n] = measure(raw, chunks.get(n), ends.get(n), r["tokens_by_chunk"], r["source"])
        m["end"] = (ends.get(n) or {}).get("end")
        m["end"] = m["end"] / 1e9 if m["end"] is not None else m["at"][-1] if m["at"] else None
        m["warmup"] = raw.get("warmup", False)
        m["status"] = ends[n]["status"] if n in ends else ""
        u = ((ends.get(n) or {}).get("usage") or {}).get("completion", -1)
        m["unseen"] = u - m["tokens"] if u >= 0 else 0
        m["failed"] = m["status"] not in ("", "ok", "stopped")
        for k in "ttft ttfo ttst e2e tpot rate max_gap itl tokens".split():
            same(f"request {n} {k}", r[k], m[k])

    measured = [m for m in ours.values() if not m["warmup"]]
    good = [m for m in measured if not m["failed"]]
    for k in "ttft ttfo ttst e2e tpot rate max_gap".split():
        # A request that was stopped or cut off has a first token, but no end-to-end time.
        values = [m[k] for m in good if m[k] is not None and (k != "e2e" or m["status"] == "ok")]
        check_distribution(k, report["metrics"][k], values)
    check_distribution("icl", report["metrics"]["icl"], [g for m in good for g in m["gaps"]])

    same("requests", report["numbers"]["requests"]["value"], sum(1 for m in measured))
    same("requests_failed", report["numbers"]["requests_failed"]["value"], sum(1 for m in measured if m["failed"]))
    arrivals = [(t, n) for m in ours.values() for t, n in zip(m["at"], m["per"])]
    begun = [m["start"] for m in measured]
    last = [m["at"][-1] for m in measured if m["at"]]
    if begun and last and report["whole"]["none"] is None:
        a, b = min(begun), max(last)
        pauses = warmup_between(events["steps"] or [], ours)
        paused = sum(max(0, min(q, b) - max(p, a)) for p, q in pauses)
        in_pause = lambda t: any(p < t <= q for p, q in pauses)
        time = b - a - paused
        same("paused", report["whole"]["paused_ns"] / 1e9, paused)
        same("output_rate", report["numbers"]["output_rate"]["value"],
             sum(n for t, n in arrivals if a <= t <= b and not in_pause(t)) / time)
        met = report["numbers"]["goodput"]["value"]
        if met is not None and not report["objectives"]:
            same("goodput", met, len([m for m in measured if m["status"] == "ok"]) / time)

    check_files(base, report, ours)
    return report


def warmup_between(steps, ours):
    """The stretches between measured requests that drained warm-up steps take."""
    flows = []
    for i, s in enumerate(sorted(steps, key=lambda s: s["number"])):
        if i == 0 or before.get("barrier") or before["workers"] != s["workers"]:
            flows.append([])
        flows[-1] += [m for m in ours.values() if m["step"] == s["number"]]
        before = s
    pauses, end, warm = [], None, False
    for flow in flows:
        spans = [(m["start"], m["end"]) for m in flow if not m["warmup"] and m["end"] is not None and m["end"] > m["start"]]
        if not spans:
            warm = warm or bool(flow)
            continue
        first = min(a for a, _ in spans)
        if end is not None and warm and first > end:
            pauses.append((end, first))
        end, warm = max([b for _, b in spans] + ([end] if end is not None else [])), False
    return pauses


def check_distribution(name, got, values):
    same(name + " n", got["n"], len(values))
    if not values:
        same(name + " mean", got["mean"], None)
        return
    same(name + " mean", got["mean"], sum(values) / len(values))
    same(name + " min", got["min"], min(values))
    same(name + " max", got["max"], max(values))
    for q, p in (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)):
        if got["quantiles"][q]["supported"] != supported(len(values), p):
            wrong.append(f"{name} {q}: support of n = {len(values)} is wrong")
        elif supported(len(values), p):
            same(f"{name} {q}", got["quantiles"][q]["value"], percentile(values, p))


UNIT = {"s": 1e3, "tok/s": 1.0}


def check_files(base, report, ours):
    """The other formats must show the figures of the JSON, to the last digit that they have."""
    figures = {}
    if os.path.exists(base + "-summary.csv"):
        for row in csv.DictReader(open(base + "-summary.csv", newline="")):
            figures[row["metric"]] = row
        for k, m in report["metrics"].items():
            row, scale = figures[k], UNIT.get(m["unit"], 1.0)
            value = m["quantiles"]["p50"]["value"]
            for column, v in (("value", value), ("mean", m["mean"]), ("min", m["min"]), ("max", m["max"])):
                if v is not None and row[column] != "inf":
                    same(f"summary {k} {column}", float(row[column]), v * scale, 0.0005001)
                    if abs(float(row[column]) - v * scale) > 0.0005001:
                        wrong.append(f"summary {k} {column}: {row[column]} is not {v * scale} in three decimals")
    if os.path.exists(base + ".csv"):
        for row in csv.DictReader(open(base + ".csv", newline="")):
            m = ours[int(row["request"])]
            for column, k, scale in (("ttft_ms", "ttft", 1e3), ("e2e_ms", "e2e", 1e3), ("rate_tok_per_s", "rate", 1)):
                want = "" if m[k] is None else f"{m[k] * scale:.3f}"
                if want != row[column] and (not want or abs(float(row[column]) - m[k] * scale) > 0.0005001):
                    wrong.append(f"CSV request {row['request']} {column}: {row[column]!r}, the events say {want!r}")
            if row["output_tokens"] and int(row["output_tokens"]) != m["tokens"]:
                wrong.append(f"CSV request {row['request']} output_tokens: {row['output_tokens']}, the events say {m['tokens']}")
    if figures and os.path.exists(base + ".pdf.txt"):
        lines = [line.split() for line in open(base + ".pdf.txt", encoding="utf-8")]
        for k, row in figures.items():
            want = [v or "—" for v in row.values()]
            if want not in lines:
                wrong.append(f"PDF: no line {' '.join(want)}")
    if os.path.exists(base + ".md"):
        text = open(base + ".md", encoding="utf-8").read()
        rate = report["metrics"]["rate"]["quantiles"]["p50"]["value"]
        found = re.search(r"\| Decode rate \| ([0-9.,]+) tok/s", text)
        if rate is not None:
            same("Markdown decode rate", float(found.group(1).replace(",", "")), float(f"{rate:.3g}"))
    if os.path.exists(base + "-benchstat.txt"):
        check_benchstat(base, report, ours)
    if os.path.exists(base + "-vllm.json"):
        check_vllm(json.load(open(base + "-vllm.json")), ours)


def check_benchstat(base, report, ours):
    steps = {s["number"]: s for s in report["events"]["steps"] or []}
    groups = {}
    for m in ours.values():
        if not m["warmup"] and m["status"] == "ok":
            s = steps[m["step"]]
            groups.setdefault((s["index"], s["repetition"]), []).append(m)
    lines = [line.split() for line in open(base + "-benchstat.txt", encoding="utf-8") if line.startswith("Benchmark")]
    same("benchstat lines", len(lines), len(groups))
    for fields, group in zip(lines, groups.values()):
        shown = dict(zip(fields[3::2], map(float, fields[2::2])))
        for unit, k, scale in (("token/sec", "rate", 1), ("ttft-ns", "ttft", 1e9), ("ns/token", "tpot", 1e9)):
            values = [m[k] * scale for m in group if m[k] is not None]
            if values:
                want = sum(values) / len(values)
                if abs(shown[unit] - want) > 0.0005001:
                    wrong.append(f"benchstat {fields[0]} {unit}: {shown[unit]}, the events say {want}")


def check_vllm(got, ours):
    measured = [m for m in ours.values() if not m["warmup"]]
    same("vllm output_lens", sum(got["output_lens"]), sum(m["tokens"] + max(0, m["unseen"]) for m in measured))
    same("vllm ttfts", sum(got["ttfts"]), sum(m["ttft"] or 0 for m in measured))
    same("vllm itls", sum(map(sum, got["itls"])), sum(sum(m["gaps"]) for m in measured))
    good = [m for m in measured if m["status"] == "ok"]
    same("vllm completed", got["completed"], len(good))
    if good:
        same("vllm mean_ttft_ms", got["mean_ttft_ms"], 1e3 * sum(m["ttft"] for m in good) / len(good))
        tpot = [(m["e2e"] - m["ttft"]) / (m["tokens"] + max(0, m["unseen"]) - 1) for m in good if m["tokens"] > 1]
        same("vllm mean_tpot_ms", got["mean_tpot_ms"], 1e3 * sum(tpot) / len(tpot))
        same("vllm p99_itl_ms", got["p99_itl_ms"], 1e3 * percentile([g for m in good for g in m["gaps"]], 0.99))
        same("vllm median_ttft_ms", got["median_ttft_ms"], 1e3 * percentile([m["ttft"] for m in good], 0.5))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
    for w in wrong[:40]:
        print(w)
    if wrong:
        sys.exit(f"{len(wrong)} figures differ")
    print("every figure agrees")
