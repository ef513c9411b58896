// A scripted model behind the OpenAI chat API. `say(message, …steps)` sets what a message is answered with:
//   say("Count.", { text: "…" }, { tools: [{ name: "shell", args: {…} }] }, { words: 200, gap: 5 })
// One step answers one model call; a message without a script is echoed.
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

const text = (content) =>
  typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("");

function stepFor(scripts, messages) {
  for (let at = messages.length - 1; at >= 0; at--) {
    if (messages[at].role !== "user") continue;
    const said = text(messages[at].content);
    const script = [...scripts].find(([message]) => said.includes(message))?.[1];
    if (!script) break;
    const done = messages.slice(at + 1).filter((message) => message.role === "assistant").length;
    return script[done] ?? { text: "done" };
  }
  const last = messages.findLast((message) => message.role === "user");
  return { text: `echo: ${text(last?.content)}` };
}

export async function startModel() {
  const calls = [];
  const scripts = new Map();
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    if (!request.url.endsWith("/chat/completions")) return response.writeHead(404).end("{}");
    const asked = JSON.parse(body);
    calls.push(asked);
    const step = stepFor(scripts, asked.messages);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (delta, finish_reason = null, usage) =>
      response.write(`data: ${JSON.stringify({
        id: "x", object: "chat.completion.chunk", created: 0, model: "fake",
        choices: [{ index: 0, delta, finish_reason }], usage,
      })}\n\n`);
    if (step.thought) send({ reasoning_content: step.thought });
    const words = step.words ? Array.from({ length: step.words }, (_, n) => `w${String(n).padStart(4, "0")} `) : [];
    for (const piece of step.pieces ?? (step.text ? [step.text] : words)) {
      if (response.destroyed) return;
      send({ content: piece });
      if (step.gap) await sleep(step.gap);
    }
    (step.tools ?? []).forEach((tool, index) => send({
      tool_calls: [{
        index, id: `call_${calls.length}_${index}`, type: "function",
        function: { name: tool.name, arguments: JSON.stringify(tool.args) },
      }],
    }));
    const [prompt_tokens, completion_tokens, cached_tokens = 0] = step.usage ?? [1000, 50];
    send({}, step.tools ? "tool_calls" : "stop", {
      prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens, prompt_tokens_details: { cached_tokens },
    });
    response.end("data: [DONE]\n\n");
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  return { url: `http://127.0.0.1:${server.address().port}/v1`, calls, say: (message, ...steps) => scripts.set(message, steps), close: () => server.close() };
}
