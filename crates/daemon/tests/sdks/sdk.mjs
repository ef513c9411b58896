// The Node SDK against the daemon that OPENAI_BASE_URL names.

import assert from "node:assert/strict";
import OpenAI from "openai";
import { VERSION } from "openai/version";

const client = new OpenAI();
const models = ["quick/quick", "quintet/quick/quick"];
const weather = {
  name: "weather",
  description: "The weather in a city.",
  parameters: { type: "object", properties: { city: { type: "string" } } },
};
const chatTools = [{ type: "function", function: weather }];
const tools = [{ type: "function", strict: false, ...weather }];
const hello = [{ role: "user", content: "hi" }];

async function chat(model) {
  const options = { model, messages: hello, stream_options: { include_usage: true } };
  const final = await client.chat.completions.stream(options).finalChatCompletion();
  assert.equal(final.choices[0].message.content, "Hello world");
  assert.equal(final.choices[0].finish_reason, "stop");
  assert.equal(final.usage.total_tokens, 10);
}

async function chatTool(model) {
  const messages = [{ role: "user", content: "ask weather" }];
  const stream = client.chat.completions.stream({ model, messages, tools: chatTools });
  const { message, finish_reason } = (await stream.finalChatCompletion()).choices[0];
  assert.equal(finish_reason, "tool_calls");
  const [call] = message.tool_calls;
  assert.equal(call.function.name, "weather");
  assert.equal(JSON.parse(call.function.arguments).city, "Oslo");
  messages.push(message, { role: "tool", tool_call_id: call.id, content: "21 degrees" });
  const after = await client.chat.completions.create({ model, messages, tools: chatTools });
  assert.equal(after.choices[0].message.content, "The tool said: 21 degrees");
}

async function responses(model) {
  const numbers = [];
  const stream = client.responses.stream({ model, input: "hi" });
  stream.on("event", (event) => numbers.push(event.sequence_number));
  const final = await stream.finalResponse();
  assert.equal(final.status, "completed");
  assert.equal(final.output_text, "Hello world");
  assert.deepEqual(numbers, [...numbers.keys()]);
  const called = await client.responses.stream({ model, input: "ask weather", tools }).finalResponse();
  assert.equal(called.output.at(-1).name, "weather");
  return { final, called };
}

async function agentResponses(model) {
  const { final, called } = await responses(model);
  const next = await client.responses.create({ model, input: "hi", previous_response_id: final.id });
  assert.equal(next.output_text, "Hello world");
  const result = { type: "function_call_output", call_id: called.output.at(-1).call_id, output: "21 degrees" };
  const after = await client.responses
    .stream({ model, previous_response_id: called.id, input: [result], tools })
    .finalResponse();
  assert.equal(after.output_text, "The tool said: 21 degrees");
  const background = await client.responses.create({ model, input: "hi", background: true });
  const events = [];
  for await (const event of await client.responses.retrieve(background.id, { stream: true })) events.push(event);
  assert.equal(events.at(-1).type, "response.completed");
  const again = await client.responses.stream({ response_id: background.id, starting_after: 3 }).finalResponse();
  assert.equal(again.output_text, "Hello world");
}

for (const model of models) {
  await chat(model);
  await chatTool(model);
}
await responses(models[0]);
await agentResponses(models[1]);
await assert.rejects(client.chat.completions.create({ model: "nobody/x", messages: hello }), {
  status: 404,
  code: "model_not_found",
});
const vectors = await client.embeddings.create({ model: "vectors", input: ["a", "b"] });
assert.equal(vectors.data[1].embedding[1].toFixed(3), "0.800");
console.log(`openai ${VERSION} for Node: everything works`);
