#!/usr/bin/env python3
"""Renders every template with every case through jinja2 under the settings of the transformers
library, and writes what comes out.

    python3 -m venv /tmp/v && /tmp/v/bin/pip install jinja2==3.1.6
    /tmp/v/bin/python make_goldens.py            # goldens.json and ../jinja/testdata/goldens.json
    /tmp/v/bin/python make_goldens.py --digests FOLDER   # digests.json of a folder of templates

The second form keeps only SHA-256 sums: it is for the templates of published models, whose text
does not belong in this repository. A rendering that fails is kept as "raised" (the template called
raise_exception), "error" (anything else) or "syntax" (it does not parse).
"""
import datetime, functools, hashlib, json, pathlib, sys
import jinja2, jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime(2026, 7, 6, 9, 5, 3)
HERE = pathlib.Path(__file__).parent


class Raised(Exception):
    pass


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise Raised(message)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda f: NOW.strftime(f)
    return env


@functools.lru_cache
def parse(source):
    try:
        return environment().from_string(source)
    except Exception:
        return None


def render(source, variables):
    template = parse(source)
    if template is None:
        return {"fails": "syntax"}
    try:
        return {"text": template.render(**variables)}
    except Raised as e:
        return {"fails": "raised", "text": str(e)}
    except Exception:
        return {"fails": "error"}


def aliased(message):
    """What transformers does to the names of reasoning before it renders."""
    found = [message[k] for k in ("reasoning_content", "thinking", "reasoning") if message.get(k) is not None]
    return {"thinking": found[0], **message, "reasoning_content": found[0]} if found else message


def variables(case):
    v = {"messages": [aliased(m) for m in case["messages"]], "tools": case.get("tools"), "documents": None,
         "add_generation_prompt": case["add_generation_prompt"], "bos_token": "<s>", "eos_token": "</s>"}
    v.update(case.get("kwargs", {}))
    return v


def main():
    cases = json.loads((HERE / "cases.json").read_text())
    if sys.argv[1:2] == ["--digests"]:
        out = {}
        for path in sorted(pathlib.Path(sys.argv[2]).rglob("*.jinja")):
            source = path.read_bytes().decode()  # newlines as they are
            one = {"sha256": hashlib.sha256(source.encode()).hexdigest(), "cases": {}}
            for c in cases:
                r = render(source, variables(c))
                if "text" in r:
                    r["text"] = hashlib.sha256(r["text"].encode()).hexdigest()
                one["cases"][c["name"]] = r.get("fails", "") + ":" + r.get("text", "")
            out[path.name] = one
        (HERE / "digests.json").write_text(json.dumps(out, indent=1) + "\n")
        return
    out = {}
    for path in sorted((HERE / "templates").glob("*.jinja")):
        source = path.read_text()
        out[path.name] = {c["name"]: render(source, variables(c)) for c in cases}
    (HERE / "goldens.json").write_text(json.dumps(out, ensure_ascii=False, indent=1) + "\n")
    folder = HERE.parent / "jinja" / "testdata"
    snippets = json.loads((folder / "snippets.json").read_text())
    values = json.loads((folder / "variables.json").read_text())
    out = [{"template": s, **render(s, values)} for s in snippets]
    (folder / "goldens.json").write_text(json.dumps(out, ensure_ascii=False, indent=1) + "\n")


main()
