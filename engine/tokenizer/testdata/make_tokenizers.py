"""Makes the tokenizers and the expected results of the package's tests.

Each family gets a small vocabulary, trained here with that family's own normaliser, pre-tokenizer,
added tokens, model options, post-processor and decoder; the vocabularies are not the families' own.
The expected results are checksums of what the Hugging Face library `tokenizers` makes of strings
that the test generates by the same rule (strings.json says from what).

    python make_tokenizers.py [OUTPUT_FOLDER]            # the checked-in files
    python make_tokenizers.py --gguf FILE.gguf OUT.json  # expected results of a real GGUF vocabulary
    python make_tokenizers.py --real DIR                 # DIR/*/tokenizer.json → expected.json beside it

Needs: tokenizers (and gguf for --gguf).
"""

import json
import os
import sys
import zlib

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

HERE = os.path.dirname(os.path.abspath(__file__))
COUNT, BLOCK = 10000, 50
MASK = (1 << 64) - 1
RULE = json.load(open(os.path.join(HERE, "strings.json"), encoding="utf-8"))


class Random:
    """splitmix64"""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return (z ^ (z >> 31)) % n


def nasty(r, added):
    """One string; the test generates the same."""
    out = []
    for _ in range(1 + r.below(8)):
        kind = r.below(8)
        if kind == 4:
            lo, hi = RULE["ranges"][r.below(len(RULE["ranges"]))]
            for _ in range(1 + r.below(3)):
                out.append(chr(lo + r.below(hi - lo + 1)))
        elif kind == 5:
            out.append(RULE["blanks"][r.below(len(RULE["blanks"]))] * (1 + r.below(5)))
        elif kind == 6:
            for _ in range(1 + r.below(6)):
                out.append(chr(33 + r.below(94)))
        elif kind == 7 and added:
            out.append(added[r.below(len(added))])
        else:
            out.append(RULE["fragments"][r.below(len(RULE["fragments"]))])
    return "".join(out)


def checksum(crc, ids):
    return zlib.crc32(b"".join(i.to_bytes(4, "little") for i in ids) + b"\xff\xff\xff\xff", crc)


def expected(tok):
    """Checksums a block of strings: ids with special tokens recognised, ids without, decoded text."""
    added = [t.content for _, t in sorted(tok.get_added_tokens_decoder().items())][:40]
    r = Random(RULE["seed"])
    result = {"added": added, "special": [], "plain": [], "text": []}
    for _ in range(COUNT // BLOCK):
        strings = [nasty(r, added) for _ in range(BLOCK)]
        special = plain = text = 0
        tok.encode_special_tokens = False
        for s in strings:
            ids = tok.encode(s, add_special_tokens=False).ids
            special = checksum(special, ids)
            text = zlib.crc32(tok.decode(ids, skip_special_tokens=False).encode() + b"\xff", text)
        tok.encode_special_tokens = True
        for s in strings:
            plain = checksum(plain, tok.encode(s, add_special_tokens=False).ids)
        for key, crc in (("special", special), ("plain", plain), ("text", text)):
            result[key].append("%08x" % crc)
    tok.encode_special_tokens = False
    result["framed"] = tok.encode("one two", add_special_tokens=True).ids
    return result


def special(*names):
    return [AddedToken(n, special=True, normalized=False) for n in names]


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace("{1,3}", "")
QWEN35 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
TAIL = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
WORD = r"[^\r\n\p{L}\p{N}]?"
GPT4O = f"{WORD}{UPPER}*{LOWER}+{CONTRACTION}|{WORD}{UPPER}+{LOWER}*{CONTRACTION}" + r"|\p{N}{1,3}" + TAIL
TEKKEN = f"{WORD}{UPPER}*{LOWER}+|{WORD}{UPPER}+{LOWER}*" + r"|\p{N}" + TAIL
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]
UNUSUAL = r"[A-Z]?\p{Ll}+|\d{1,2}(?=(?:\d\d)*(?!\d))|\s+"  # no family's: takes the general engine

QWEN_ADDED = special("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>") + [
    AddedToken(t, special=False, normalized=False) for t in ("<tool_call>", "</tool_call>", "<think>", "</think>")]


def isolated(*patterns):
    return [pre_tokenizers.Split(Regex(p), "isolated") for p in patterns]


def byte_level(patterns, added, norm=None, before=(), post=None, ignore_merges=False, use_regex=False, prefix=False):
    tok = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if norm is not None:
        tok.normalizer = norm
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        list(before) + isolated(*patterns) + [pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=use_regex)])
    tok.decoder = decoders.ByteLevel()
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(vocab_size=1500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    tok.train_from_iterator(corpus(), trainer)
    tok.add_tokens(added)
    if post:
        tok.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
            single=post + " $A", special_tokens=[(post, tok.token_to_id(post))])])
    return tok


def sentencepiece(norm, pre, decoder, added, fuse=True, fallback=True):
    tok = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=fuse, byte_fallback=fallback))
    if norm is not None:
        tok.normalizer = norm
    # Trained with words kept apart, as sentencepiece does, whatever is used afterwards.
    tok.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    names = ["<unk>", "<s>", "</s>"] + (["<0x%02X>" % b for b in range(256)] if fallback else [])
    trainer = trainers.BpeTrainer(vocab_size=1500, special_tokens=names, show_progress=False, limit_alphabet=200)
    tok.train_from_iterator(corpus(), trainer)
    data = json.loads(tok.to_str())
    data["added_tokens"] = [t for t in data["added_tokens"] if not t["content"].startswith("<0x")]
    tok = Tokenizer.from_str(json.dumps(data))
    tok.normalizer, tok.pre_tokenizer = norm, pre
    tok.decoder = decoder
    tok.add_tokens(added)
    tok.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", tok.token_to_id("<s>"))])
    return tok


def corpus():
    r = Random(1)
    for name in RULE["corpus"]:
        with open(os.path.join(HERE, name), encoding="utf-8") as f:
            yield from f.read().split("\n")
    for _ in range(3000):
        yield nasty(r, [])


def families():
    N, P, D = normalizers, pre_tokenizers, decoders
    spaces = D.Replace("▁", " ")
    legacy = N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")])
    strip = D.Sequence([spaces, D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])
    odd = [AddedToken("<l>", lstrip=True, normalized=False), AddedToken("<r>", rstrip=True, normalized=False),
           AddedToken("<lr>", lstrip=True, rstrip=True, special=True, normalized=False),
           AddedToken("word", single_word=True, normalized=False), AddedToken("Ångström", normalized=True),
           AddedToken("  ", normalized=True), AddedToken("ab", normalized=False), AddedToken("abc", normalized=False),
           AddedToken("é", single_word=True, rstrip=True, normalized=True)]
    yield "gpt2", byte_level([], special("<|endoftext|>"), use_regex=True)
    yield "gpt2-prefix", byte_level([], special("<|endoftext|>"), use_regex=True, prefix=True)
    yield "smollm", byte_level([], special("<|endoftext|>", "<|im_start|>", "<|im_end|>"),
                               before=[P.Digits(individual_digits=True)], use_regex=True)
    yield "llama3", byte_level([LLAMA3], special("<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"),
                               post="<|begin_of_text|>", ignore_merges=True)
    yield "qwen2", byte_level([QWEN2], QWEN_ADDED, norm=N.NFC())
    yield "qwen35", byte_level([QWEN35], QWEN_ADDED, norm=N.NFC())
    yield "gpt4o", byte_level([GPT4O], special("<|begin_of_text|>"), post="<|begin_of_text|>")
    yield "tekken", byte_level([TEKKEN], special("<s>", "[INST]", "[/INST]"), post="<s>", ignore_merges=True)
    yield "deepseek", byte_level(DEEPSEEK, special("<｜begin▁of▁sentence｜>") + [AddedToken("<｜User｜>"), AddedToken("<think>")])
    yield "added", byte_level([QWEN2], odd, norm=N.NFC())
    yield "unusual", byte_level([], special("<s>"), before=[
        P.Split(Regex(UNUSUAL), "removed"), P.Split("-", "merged_with_previous"), P.Split("_", "merged_with_next"),
        P.Split(Regex(r"[.,;]+"), "contiguous", invert=True), P.Digits(individual_digits=False)],
        norm=N.Sequence([N.NFKC(), N.Strip(left=True, right=False), N.Replace(Regex(r"q+"), "Q")]))
    yield "llama2", sentencepiece(legacy, None, strip, [])
    yield "llama2-metaspace", sentencepiece(None, P.Metaspace(prepend_scheme="first", split=False), strip, [])
    yield "mistral-metaspace", sentencepiece(None, P.Metaspace(prepend_scheme="always", split=True),
                                             D.Metaspace(prepend_scheme="always"), odd, fallback=False)
    yield "gemma", sentencepiece(N.Replace(" ", "▁"), P.Split(" ", "merged_with_previous"),
                                 D.Sequence([spaces, D.ByteFallback(), D.Fuse()]), special("<start_of_turn>", "<end_of_turn>"))
    yield "llama2-added", sentencepiece(legacy, None, strip, odd + [AddedToken("</s>", normalized=True, special=True)], fuse=False, fallback=False)


def of_gguf(path):
    from gguf import GGUFReader
    fields = GGUFReader(path).fields
    get = lambda key: fields["tokenizer.ggml." + key].contents()
    if get("model") != "gpt2" or get("pre") != "smollm":
        sys.exit("only SmolLM's pipeline is written here")
    tokens, types = get("tokens"), get("token_type")
    tok = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=[tuple(m.split(" ")) for m in get("merges")]))
    tok.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                 pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tok.decoder = decoders.ByteLevel()
    tok.add_special_tokens(special(*[t for t, kind in zip(tokens, types) if kind == 3]))
    return tok


def write(path, value):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    args = sys.argv[1:]
    if args[:1] == ["--gguf"]:
        write(args[2], expected(of_gguf(args[1])))
    elif args[:1] == ["--real"]:
        for name in sorted(os.listdir(args[1])):
            tok = Tokenizer.from_file(os.path.join(args[1], name, "tokenizer.json"))
            write(os.path.join(args[1], name, "expected.json"), expected(tok))
    else:
        out = args[0] if args else HERE
        for name, tok in families():
            write(os.path.join(out, name + ".json"), json.loads(tok.to_str()))
            write(os.path.join(out, name + ".expected.json"), expected(tok))
            print(name, tok.get_vocab_size(), flush=True)
