// Uses Velo's API through the openai package for Node, as a program would. Prints one JSON object a
// check; exits with 1 where one failed.
//
// usage: openai_node.mjs BASE_URL
import OpenAI from "openai";

const base = process.argv[2].replace(/\/$/, "");
const client = new OpenAI({ baseURL: base + "/v1", apiKey: "none", timeout: 120000, maxRetries: 0 });
const model = (await client.models.list()).data[0].id;
let failed = 0;

async function check(name, f) {
  const start = Date.now();
  try {
    const detail = await f();
    console.log(JSON.stringify({ check: name, ok: true, seconds: (Date.now() - start) / 1000, detail }));
  } catch (e) {
    failed++;
    console.log(JSON.stringify({ check: name, ok: false, error: String(e).slice(0, 600) }));
  }
}
const want = (condition, what) => { if (!condition) throw new Error(what); };
const ask = (text, more = {}, options = {}) =>
  client.chat.completions.create({ model, messages: [{ role: "user", content: text }], max_tokens: 24, temperature: 0, ...more }, options);
const running = async () => Number((await (await fetch(base + "/metrics")).text()).match(/^velogb10_requests_running (\S+)/m)[1]);

const tool = { type: "function", function: { name: "add", description: "Adds two numbers", parameters: {
  type: "object", properties: { a: { type: "integer", minimum: 0, maximum: 99 }, b: { type: "integer", minimum: 0, maximum: 99 } },
  required: ["a", "b"], additionalProperties: false } } };

await check("chat, streamed and not, are the same", async () => {
  const whole = await ask("Name three colours.");
  let text = "", usage = null;
  for await (const chunk of await ask("Name three colours.", { stream: true, stream_options: { include_usage: true } })) {
    text += chunk.choices[0]?.delta?.content ?? "";
    usage = chunk.usage ?? usage;
  }
  want(text === whole.choices[0].message.content, `streamed ${text}, whole ${whole.choices[0].message.content}`);
  want(usage.completion_tokens === whole.usage.completion_tokens, `usage ${JSON.stringify(usage)}`);
  return text;
});

await check("a JSON schema is kept to", async () => {
  const schema = { type: "object", properties: { list: { type: "array", items: { type: "integer", minimum: 0, maximum: 9 }, minItems: 2, maxItems: 4 } }, required: ["list"], additionalProperties: false };
  const r = await ask("A few numbers as JSON.", { max_tokens: 60, response_format: { type: "json_schema", json_schema: { name: "numbers", strict: true, schema } } });
  const got = JSON.parse(r.choices[0].message.content);
  want(got.list.length >= 2 && got.list.length <= 4 && got.list.every((n) => Number.isInteger(n) && n >= 0 && n <= 9), JSON.stringify(got));
  return got;
});

await check("a tool must be called, streamed", async () => {
  const stream = client.chat.completions.stream({ model, messages: [{ role: "user", content: "What is 2 and 3?" }], max_tokens: 60, temperature: 0, tools: [tool], tool_choice: "required", parallel_tool_calls: false });
  const r = await stream.finalChatCompletion();
  want(r.choices[0].finish_reason === "tool_calls", `finish ${r.choices[0].finish_reason}`);
  const args = JSON.parse(r.choices[0].message.tool_calls[0].function.arguments);
  want(Number.isInteger(args.a) && Number.isInteger(args.b), JSON.stringify(args));
  return args;
});

await check("a stream that is aborted ends on the server", async () => {
  const abort = new AbortController();
  let n = 0;
  try {
    for await (const _ of await ask("Count to a thousand.", { max_tokens: 2000, stream: true, ignore_eos: true }, { signal: abort.signal })) {
      if (++n === 4) abort.abort();
    }
  } catch (e) {
    want(abort.signal.aborted, String(e));
  }
  for (const end = Date.now() + 10000; (await running()) > 0;) {
    want(Date.now() < end, "it still runs after 10 s");
    await new Promise((r) => setTimeout(r, 50));
  }
  return `${n} chunks`;
});

await check("errors have codes", async () => {
  try {
    await ask("word ".repeat(40000));
  } catch (e) {
    want(e instanceof OpenAI.BadRequestError && e.code === "context_length_exceeded", `${e.code}: ${e.message}`);
    return e.message;
  }
  throw new Error("a prompt beyond the context was answered");
});

process.exit(failed ? 1 : 0);
