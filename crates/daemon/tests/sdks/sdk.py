"""The Python SDK against the daemon that `OPENAI_BASE_URL` names."""

import openai
from openai import OpenAI

client = OpenAI()
MODELS = ["quick/quick", "quintet/quick/quick"]
WEATHER = {
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
}
CHAT_TOOLS = [{"type": "function", "function": WEATHER}]
TOOLS = [{"type": "function", "strict": False, **WEATHER}]


def hello():
    return [{"role": "user", "content": "hi"}]


def models():
    names = [model.id for model in client.models.list()]
    for name in [*MODELS, "vectors"]:
        assert name in names, names
        assert client.models.retrieve(name).id == name


def chat(model):
    whole = client.chat.completions.create(model=model, messages=hello())
    assert whole.choices[0].message.content == "Hello world", whole
    assert whole.choices[0].finish_reason == "stop", whole
    assert whole.usage.total_tokens == 10, whole
    with client.chat.completions.stream(
        model=model, messages=hello(), stream_options={"include_usage": True}
    ) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_completion()
    assert "content.delta" in kinds and "content.done" in kinds, kinds
    assert final.choices[0].message.content == "Hello world", final
    assert final.usage.total_tokens == 10, final


def chat_tools(model):
    messages = [{"role": "user", "content": "ask weather"}]
    with client.chat.completions.stream(model=model, messages=messages, tools=CHAT_TOOLS) as stream:
        kinds = [event.type for event in stream]
        message = stream.get_final_completion().choices[0].message
    assert "tool_calls.function.arguments.done" in kinds, kinds
    [call] = message.tool_calls
    assert call.function.name == "weather" and "Oslo" in call.function.arguments, call
    messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
    messages.append({"role": "tool", "tool_call_id": call.id, "content": "21 degrees"})
    after = client.chat.completions.create(model=model, messages=messages, tools=CHAT_TOOLS)
    assert after.choices[0].message.content == "The tool said: 21 degrees", after


def responses(model):
    whole = client.responses.create(model=model, input="hi")
    assert whole.status == "completed" and whole.output_text == "Hello world", whole
    with client.responses.stream(model=model, input="hi") as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events))), events
    assert final.output_text == "Hello world" and final.usage.total_tokens == 10, final
    with client.responses.stream(model=model, input="ask weather", tools=TOOLS) as stream:
        call = stream.get_final_response().output[-1]
    assert call.type == "function_call" and call.name == "weather", call
    return final, call


def agent_responses(model):
    first, _ = responses(model)
    second = client.responses.create(model=model, input="hi", previous_response_id=first.id)
    assert second.output_text == "Hello world", second
    with client.responses.stream(model=model, input="ask weather", tools=TOOLS) as stream:
        waiting = stream.get_final_response()
    result = {"type": "function_call_output", "call_id": waiting.output[-1].call_id, "output": "21 degrees"}
    after = client.responses.create(
        model=model, previous_response_id=waiting.id, input=[result], tools=TOOLS
    )
    assert after.output_text == "The tool said: 21 degrees", after
    background = client.responses.create(model=model, input="hi", background=True)
    events = list(client.responses.retrieve(background.id, stream=True))
    assert events[-1].type == "response.completed", events
    later = list(client.responses.retrieve(background.id, stream=True, starting_after=3))
    assert [event.sequence_number for event in later] == list(range(4, len(events))), later
    assert client.responses.retrieve(background.id).output_text == "Hello world"
    items = client.responses.input_items.list(background.id).data
    assert items[0].content[0].text == "hi", items
    client.responses.delete(background.id)
    try:
        client.responses.retrieve(background.id)
        raise AssertionError("a deleted response was retrieved")
    except openai.NotFoundError:
        pass


def approval(model):
    whole = client.chat.completions.create(model=model, messages=[{"role": "user", "content": "use shell"}])
    assert whole.choices[0].finish_reason == "stop", whole
    assert "approval" in whole.choices[0].message.content, whole


def errors():
    for model, expected in [("nobody/x", openai.NotFoundError), ("", openai.NotFoundError)]:
        try:
            client.chat.completions.create(model=model, messages=hello())
            raise AssertionError(f"{model} was answered")
        except expected as error:
            assert error.code == "model_not_found", error


def embeddings():
    for options in [{}, {"encoding_format": "float"}]:
        vectors = client.embeddings.create(model="vectors", input=["a", "b"], **options).data
        assert [round(number, 3) for number in vectors[1].embedding] == [0.6, 0.8], vectors


models()
for each in MODELS:
    chat(each)
    chat_tools(each)
responses(MODELS[0])
agent_responses(MODELS[1])
approval(MODELS[1])
errors()
embeddings()
print(f"openai {openai.__version__} for Python: everything works")
