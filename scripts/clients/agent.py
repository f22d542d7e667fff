"""An agent of the openai-agents package that runs on Velo's API: it must call its tool, gets the
result and answers.

usage: agent.py BASE_URL"""
import asyncio
import json
import sys

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(True)
called = []


@function_tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    called.append(city)
    return f"It is sunny in {city}, 21 degrees."


async def main(base):
    client = AsyncOpenAI(base_url=base.rstrip("/") + "/v1", api_key="none", timeout=120, max_retries=0)
    model = (await client.models.list()).data[0].id
    agent = Agent(name="Weather", instructions="Answer with the weather.", tools=[get_weather],
                  model=OpenAIChatCompletionsModel(model=model, openai_client=client),
                  model_settings=ModelSettings(tool_choice="required", temperature=0, max_tokens=120))
    result = Runner.run_streamed(agent, "What is the weather in Paris?", max_turns=4)
    events = 0
    async for _ in result.stream_events():
        events += 1
    ok = len(called) > 0 and isinstance(result.final_output, str)
    print(json.dumps({"check": "an agent calls its tool and answers", "ok": ok, "detail": {"called": called, "answer": result.final_output, "events": events}}))
    return 0 if ok else 1


sys.exit(asyncio.run(main(sys.argv[1])))
