"""Uses Velo's API through the openai package, as a program would. Prints one JSON object a check;
exits with 1 where one failed.

usage: openai_python.py BASE_URL"""
import json
import sys
import threading
import time
import urllib.request

import openai

base = sys.argv[1].rstrip("/")
client = openai.OpenAI(base_url=base + "/v1", api_key="none", timeout=120, max_retries=0)
model = client.models.list().data[0].id
failed = 0


def check(name):
    def run(f):
        global failed
        start = time.time()
        try:
            detail = f()
            print(json.dumps({"check": name, "ok": True, "seconds": round(time.time() - start, 3), "detail": detail}), flush=True)
        except Exception as e:  # each check is to be seen, whatever became of the others
            failed += 1
            print(json.dumps({"check": name, "ok": False, "error": f"{type(e).__name__}: {e}"[:600]}), flush=True)
    return run


def ask(text="Name three colours.", **more):
    args = {"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": 24, "temperature": 0}
    args.update(more)
    return client.chat.completions.create(**args)


def want(condition, what):
    if not condition:
        raise AssertionError(what)


def metric(name):
    text = urllib.request.urlopen(base + "/metrics", timeout=10).read().decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.split("{")[0].split(" ")[0] == name)


TOOL = {"type": "function", "function": {"name": "get_weather", "description": "Weather of a city", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "maxLength": 20}, "days": {"type": "integer", "minimum": 1, "maximum": 7}},
    "required": ["city", "days"], "additionalProperties": False}}}
SCHEMA = {"type": "object", "properties": {"colour": {"enum": ["red", "green", "blue"]}, "count": {"type": "integer", "minimum": 0, "maximum": 99}},
          "required": ["colour", "count"], "additionalProperties": False}


def weather(call):
    want(call.function.name == "get_weather", f"the function is {call.function.name}")
    args = json.loads(call.function.arguments)
    want(isinstance(args["city"], str) and 1 <= args["days"] <= 7 and set(args) == {"city", "days"}, f"the arguments are {args}")
    return args


@check("models")
def _():
    m = client.models.retrieve(model)
    want(m.owned_by == "velo", f"owned by {m.owned_by}")
    return m.id


@check("chat, streamed and not, are the same")
def _():
    whole = ask()
    want(whole.usage.completion_tokens > 0 and whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens, f"usage {whole.usage}")
    text, usage, finish, roles = "", None, None, []
    for chunk in ask(stream=True, stream_options={"include_usage": True}):
        for c in chunk.choices:
            text += c.delta.content or ""
            finish = c.finish_reason or finish
            roles += [c.delta.role] if c.delta.role else []
        usage = chunk.usage or usage
    want(text == whole.choices[0].message.content, f"streamed {text!r}, whole {whole.choices[0].message.content!r}")
    want(finish == whole.choices[0].finish_reason and roles == ["assistant"], f"finish {finish}, roles {roles}")
    want(usage.completion_tokens == whole.usage.completion_tokens, f"usage {usage} and {whole.usage}")
    return text


@check("seed, n and log-probabilities")
def _():
    a, b = (ask(temperature=1, seed=7, n=2, logprobs=True, top_logprobs=3) for _ in range(2))
    texts = [[c.message.content for c in r.choices] for r in (a, b)]
    want(texts[0] == texts[1], f"one seed, two answers: {texts}")
    want(len(texts[0]) == 2 and sorted(c.index for c in a.choices) == [0, 1], "n is 2")
    for c in a.choices:
        want(all(len(t.top_logprobs) == 3 and t.logprob <= 0 for t in c.logprobs.content), "log-probabilities")
    want(a.usage.completion_tokens == sum(len(c.logprobs.content) for c in a.choices) or
         a.choices[0].finish_reason == "stop" or a.choices[1].finish_reason == "stop", f"{a.usage} for {[len(c.logprobs.content) for c in a.choices]}")
    return texts[0]


@check("a JSON schema is kept to")
def _():
    r = ask("A colour and a number, as JSON.", max_tokens=60, temperature=1, seed=3,
            response_format={"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}})
    got = json.loads(r.choices[0].message.content)
    want(set(got) == {"colour", "count"} and got["colour"] in ("red", "green", "blue") and 0 <= got["count"] <= 99, f"{got}")
    return got


@check("a JSON schema is kept to, parsed by the package")
def _():
    import pydantic

    class Answer(pydantic.BaseModel):
        yes: bool
        reason: str = pydantic.Field(max_length=30)

    r = client.chat.completions.parse(model=model, messages=[{"role": "user", "content": "Is water wet?"}], max_tokens=80, temperature=0, response_format=Answer)
    want(isinstance(r.choices[0].message.parsed, Answer), f"{r.choices[0].message}")
    return r.choices[0].message.parsed.model_dump()


@check("a tool must be called")
def _():
    r = ask("What is the weather in Rome?", tools=[TOOL], tool_choice="required", parallel_tool_calls=False, max_tokens=80)
    want(r.choices[0].finish_reason == "tool_calls", f"finish {r.choices[0].finish_reason}")
    call = r.choices[0].message.tool_calls[0]
    args = weather(call)
    follow = client.chat.completions.create(model=model, max_tokens=16, temperature=0, tools=[TOOL], messages=[
        {"role": "user", "content": "What is the weather in Rome?"}, r.choices[0].message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "sunny"}])
    want(follow.choices[0].message.content is not None or follow.choices[0].message.tool_calls, "no answer to the result")
    return args


@check("a named tool, streamed")
def _():
    calls = {}
    for chunk in ask("What is the weather in Rome?", tools=[TOOL], tool_choice={"type": "function", "function": {"name": "get_weather"}}, max_tokens=80, stream=True):
        for c in chunk.choices:
            for t in c.delta.tool_calls or []:
                call = calls.setdefault(t.index, {"name": "", "arguments": "", "pieces": 0})
                call["name"] += (t.function.name or "")
                call["arguments"] += (t.function.arguments or "")
                call["pieces"] += 1
    want(len(calls) == 1 and calls[0]["name"] == "get_weather", f"{calls}")
    args = json.loads(calls[0]["arguments"])
    want(set(args) == {"city", "days"}, f"{args}")
    return calls[0]


@check("completions, streamed with usage")
def _():
    text, usage = "", None
    for chunk in client.completions.create(model=model, prompt="Once upon a time", max_tokens=12, temperature=0, stream=True, stream_options={"include_usage": True}):
        text += "".join(c.text for c in chunk.choices)
        usage = chunk.usage or usage
    want(usage and usage.completion_tokens == 12, f"usage {usage}")
    return text


@check("a stream that is left ends on the server")
def _():
    before = metric("velogb10_requests_total")
    stream = ask("Count to a thousand.", max_tokens=2000, stream=True, extra_body={"ignore_eos": True})
    for i, _ in enumerate(stream):
        if i == 3:
            break
    want(metric("velogb10_requests_running") == 1, "it does not run")
    stream.close()
    end = time.time() + 10
    while metric("velogb10_requests_running") > 0:
        want(time.time() < end, "it still runs after 10 s")
        time.sleep(0.05)
    want(metric("velogb10_requests_total") == before + 1, "it was not counted")
    return "ended"


@check("many at once")
def _():
    alone = ask(max_tokens=16).choices[0].message.content
    got = [None] * 12

    def one(i):
        got[i] = ask(max_tokens=16).choices[0].message.content

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(got))]
    [t.start() for t in threads]
    [t.join() for t in threads]
    want(all(g == alone for g in got), f"alone {alone!r}, together {got}")
    return len(got)


@check("errors have codes")
def _():
    codes = {}
    for name, more in {"context_length_exceeded": {"messages": [{"role": "user", "content": "word " * 40000}]},
                       "invalid_sampling_parameter": {"extra_body": {"repetition_penalty": -1}},
                       "invalid_request_body": {"messages": "no list"}}.items():
        try:
            ask(**more)
            raise AssertionError(f"{name}: was answered")
        except openai.BadRequestError as e:
            want(e.code == name, f"{name}: code {e.code}, {e.message}")
            codes[name] = e.message
    return codes


sys.exit(1 if failed else 0)
