// What the console promises, each on a daemon of its own.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const APPROVE_ALL = `[approval]\nkinds = []\n`;
/** Turns of the long session; each has about 450 events, so that it has more than ten thousand. */
const TURNS = 23;
const ASK = `[approval]\nkinds = ["write", "exec"]\n`;

const DOT = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==", "base64");

const by = (page, role, name) => page.getByRole(role, { name, exact: true });
const transcript = (page) => by(page, "log", "Transcript");

async function send(page, text) {
  await by(page, "textbox", "Message").fill(text);
  await by(page, "button", "Send").click();
}

async function until(what, check, ms = 60_000) {
  const end = Date.now() + ms;
  for (;;) {
    const value = await check();
    if (value) return value;
    if (Date.now() > end) throw new Error(`timed out: ${what}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** True if a process has this environment variable; inside a sandbox, a server has another process number. */
function runsWith(variable) {
  return readdirSync("/proc").some((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").includes(variable);
    } catch {
      return false;
    }
  });
}

async function check(page, axe) {
  const found = await page.evaluate(`${axe}; axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"] })`);
  const serious = found.violations.map((one) => `${one.impact} ${one.id}: ${one.nodes.map((node) => node.html).slice(0, 3).join(" | ")}`);
  assert.deepEqual(serious, []);
}

const messageText = (session) =>
  session.messages.filter((one) => one.role === "assistant")
    .map((one) => one.parts.filter((part) => part.type === "text").map((part) => part.text).join("")).join(" ");

/** Opens a page in both themes, wide and as on a phone: axe is content and nothing is wider than the screen. */
async function everywhere({ open, axe }, look) {
  for (const colorScheme of ["light", "dark"]) {
    for (const viewport of [{ width: 1280, height: 800 }, { width: 360, height: 640 }]) {
      const page = await open({ colorScheme, viewport });
      await look(page);
      await check(page, axe);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `fits ${viewport.width}`);
    }
  }
}

const SCREEN = join(import.meta.dirname, "../../crates/senses/tests/it/screens/quarter.png");
const HOSTILE = "<img src=x onerror=alert(1)>\u202e";
const MCP_SERVER = join(import.meta.dirname, "../../crates/daemon/tests/mcp/server.py");

export const tests = [
  {
    name: "a task from the first screen to the undo",
    config: ASK,
    async run({ daemon, model, open, pictures }) {
      const work = daemon.workspace("shop");
      writeFileSync(join(work, "price.txt"), "net\n");
      const page = await open();
      await page.goto(daemon.url);
      await by(page, "button", "New session").click();
      await by(page, "textbox", "Workspace").fill(work);
      await page.keyboard.press("Enter");
      await page.waitForURL(/\/sessions\/sess_/);
      const id = page.url().split("/").at(-1);
      model.say("Add the tax to the price list.",
        { thought: "I look at the file first.", text: "Looking.", tools: [{ name: "shell", args: { command: "cat price.txt && echo zebrafish" } }], usage: [1200, 34] },
        { tools: [{ name: "write_file", args: { path: "price.txt", content: "net\ntax\n" } }], usage: [1300, 21] },
        { text: "Added the **tax** line to `price.txt`.", usage: [1400, 13] },
      );
      await send(page, "Add the tax to the price list.");
      const approve = by(page, "button", "Approve");
      await approve.waitFor();
      await page.getByText("cat price.txt && echo zebrafish").first().waitFor();

      // The first screen of another page shows the question with the exact command.
      const home = await open();
      await home.goto(daemon.url);
      await by(home, "button", "Approve").waitFor();
      await home.locator("pre.command", { hasText: "cat price.txt && echo zebrafish" }).waitFor();
      if (pictures) await home.screenshot({ path: join(pictures, "console-overview.png") });
      await by(home, "button", "Approve").click();

      await page.getByText("zebrafish", { exact: false }).last().waitFor();
      await page.getByRole("region", { name: "Diff price.txt" }).first().waitFor();
      if (pictures) await page.screenshot({ path: join(pictures, "console-approval.png") });
      await by(page, "button", "Approve").click();
      await by(page, "button", "Undo").waitFor();
      await transcript(page).getByText("Added the tax line to").waitFor();
      assert.equal(readFileSync(join(work, "price.txt"), "utf8"), "net\ntax\n");
      const diff = page.getByRole("region", { name: "Diff price.txt" });
      assert.match(await diff.innerText(), /\+tax/);
      await until("token totals", async () => (await page.locator(".tokens").innerText()).includes("3968"));
      if (pictures) await page.screenshot({ path: join(pictures, "console-session.png") });

      // Exactly what the model was sent.
      await by(page, "button", "Prompt").click();
      const dialog = by(page, "dialog", "Prompt");
      await dialog.getByText("Result of shell").waitFor();
      const shown = await dialog.innerText();
      const system = model.calls[2].messages[0].content;
      const parts = await dialog.locator("pre").allTextContents();
      assert.ok(parts.includes(typeof system === "string" ? system : system[0].text), "the system prompt is shown as it was sent");
      assert.match(shown, /zebrafish/);
      assert.match(shown, /\d+ tokens/);
      if (pictures) await page.screenshot({ path: join(pictures, "console-prompt.png") });
      await by(page, "button", "Close").click();

      await by(page, "button", "Dry run").click();
      await page.getByText("would be reverted").waitFor();
      writeFileSync(join(work, "price.txt"), "mine\n");
      await by(page, "button", "Dry run").click();
      await by(page, "button", "Dry run").click();
      await page.getByText(/Undo is not possible: .*price.txt was changed since/).waitFor();
      writeFileSync(join(work, "price.txt"), "net\ntax\n");
      await by(page, "button", "Undo").click();
      await until("the undo", async () => readFileSync(join(work, "price.txt"), "utf8") === "net\n");
      await page.getByText("Changes undone: price.txt").waitFor();
      await by(page, "button", "Redo").click();
      await until("the redo", async () => readFileSync(join(work, "price.txt"), "utf8") === "net\ntax\n");
      await by(page, "button", "Undo").waitFor();

      // Found by a word that only a tool said.
      await by(page, "searchbox", "Search").fill("zebrafish");
      const list = by(page, "list", "Sessions");
      await list.locator("mark", { hasText: "zebrafish" }).first().waitFor();
      assert.ok(await list.locator(`a[href*="${id}"]`).count());
      await by(page, "searchbox", "Search").fill("");
      await until("the list again", async () => (await list.locator("mark").count()) === 0);
    },
  },
  {
    name: "deny with a reason, stop, retry, queue and fork",
    config: ASK,
    async run({ daemon, model, open }) {
      const work = daemon.workspace("w");
      const page = await open();
      await page.goto(`${daemon.url}/sessions/${await daemon.session(work)}`);
      // Nothing hides in what is asked: characters that turn the order around are escapes.
      model.say("Go.", { tools: [{ name: "shell", args: { command: "touch made # \u202etxt" } }] }, { text: "Understood." });
      await send(page, "Go.");
      await page.locator("pre.command", { hasText: "touch made # \\u202etxt" }).waitFor();
      await by(page, "textbox", "Reason").fill("not on Fridays");
      await by(page, "button", "Deny").click();
      await transcript(page).getByText("Understood.").waitFor();
      await transcript(page).getByText("denied: not on Fridays").first().waitFor();
      assert.ok(!existsSync(join(work, "made")));
      model.say("Count.", { words: 4000, gap: 10 });
      await send(page, "Count.");
      await transcript(page).getByText("w0003").waitFor();
      await send(page, "the second task");
      await transcript(page).getByText("queued").waitFor();
      await by(page, "button", "Stop").click();
      await transcript(page).getByText("echo: the second task").waitFor();
      await by(page, "button", "Edit").last().click();
      await by(page, "textbox", "Edited text").fill("another task");
      const before = page.url();
      await by(page, "button", "Fork from here").click();
      await page.waitForURL((url) => String(url) !== before);
      await transcript(page).getByText("echo: another task").waitFor();
      assert.equal(await transcript(page).getByText("echo: the second task").count(), 0);
    },
  },
  {
    name: "a stopped turn is tried again",
    config: APPROVE_ALL,
    async run({ daemon, model, open }) {
      const page = await open();
      await page.goto(`${daemon.url}/sessions/${await daemon.session(daemon.workspace("w"))}`);
      model.say("Run.", { tools: [{ name: "shell", args: { command: "echo begun; sleep 30" } }] }, { text: "over" });
      await send(page, "Run.");
      await transcript(page).getByText("begun", { exact: true }).first().waitFor();
      await by(page, "button", "Stop").click();
      await by(page, "button", "Retry").click();
      await transcript(page).getByText("Attempt 2").waitFor();
      await by(page, "button", "Stop").click();
      await by(page, "button", "Retry").waitFor();
    },
  },
  {
    name: "kill -9 in the middle of an answer",
    config: APPROVE_ALL,
    async run({ daemon, model, open }) {
      const id = await daemon.session(daemon.workspace("w"));
      const page = await open();
      await page.goto(`${daemon.url}/sessions/${id}`);
      await page.evaluate(() => (window.kept = true));
      model.say("Count.", { words: 300, gap: 10 });
      await send(page, "Count.");
      await transcript(page).getByText("w0050").waitFor();
      await daemon.kill();
      await page.getByText("The daemon is not responding").waitFor();
      await daemon.start();
      await transcript(page).getByText("The daemon restarted and the turn continued").waitFor();
      await until("the end", async () => (await daemon.journal(id)).status !== "active" || (await transcript(page).locator(".turn-end").count()) > 0);
      await transcript(page).locator(".turn-end").waitFor();
      assert.equal(await page.evaluate(() => window.kept), true);
      const shown = (await transcript(page).locator(".message.assistant .markdown").allInnerTexts()).join(" ");
      const kept = messageText(await daemon.journal(id));
      const words = (text) => text.split(/\s+/).filter(Boolean).join(" ");
      assert.equal(words(shown), words(kept));
      await page.reload();
      await transcript(page).locator(".turn-end").waitFor();
      const again = (await transcript(page).locator(".message.assistant .markdown").allInnerTexts()).join(" ");
      assert.equal(words(again), words(kept));
    },
  },
  {
    name: "hostile text stays text",
    config: APPROVE_ALL,
    async run({ daemon, model, open }) {
      const hostile = [
        "<img src=x onerror=alert(1)>", "<script>alert(2)</script>", "[a](javascript:alert(3))",
        "[b](data:text/html,<script>alert(4)</script>)", "![c](https://evil.example/p.png)",
        "<svg onload=alert(5)>", "`<iframe src=//evil.example>`", "[d]( JaVaScRiPt:alert(6))",
        "<a href='vbscript:x'>e</a>", "```html\n<script>alert(7)</script>\n```", "| a |\n|---|\n| <b onclick=alert(8)>x</b> |",
      ].join("\n\n");
      const work = daemon.workspace("w");
      writeFileSync(join(work, "out.txt"), hostile);
      const page = await open();
      await page.goto(`${daemon.url}/sessions/${await daemon.session(work)}`);
      model.say("<b>x</b>",
        { text: hostile, tools: [{ name: "shell", args: { command: "cat out.txt; cp out.txt '<img src=x onerror=alert(9)>.txt'" } }] },
        { text: "end of it" },
      );
      await send(page, "<b>x</b>");
      await transcript(page).getByText("end of it").waitFor();
      await transcript(page).locator(".turn-end").waitFor();
      const inside = await transcript(page).evaluate((log) => ({
        bad: log.querySelectorAll("script, iframe, svg[onload], img, b").length,
        links: [...log.querySelectorAll("a[href]")].map((link) => link.getAttribute("href")),
      }));
      assert.equal(inside.bad, 0);
      assert.deepEqual(inside.links.filter((href) => !/^(https?:|\/|mailto:)/.test(href)), []);
    },
  },
  {
    name: "a phone, both themes, keyboard and axe",
    config: ASK,
    async run({ daemon, model, open, axe, pictures }) {
      const work = daemon.workspace("garden");
      model.say("Water the plants.", { text: "# Plan\n\n1. Look\n2. Water\n\n```sh\nwater --all\n```\n\n| bed | litres |\n|---|---|\n| roses | 4 |", tools: [{ name: "shell", args: { command: "curl -s https://weather.example/today.json | jq '.rain > 4' && ./water --beds roses,herbs,beans --litres 4" } }] });
      await daemon.session(work, "Water the plants.");
      const id = await daemon.session(work, "Say hello");
      for (const colorScheme of ["light", "dark"]) {
        for (const viewport of [{ width: 1280, height: 800 }, { width: 360, height: 640 }]) {
          const page = await open({ colorScheme, viewport });
          await page.goto(daemon.url);
          await by(page, "button", "Approve").waitFor();
          await check(page, axe);
          const name = `${viewport.width}-${colorScheme}`;
          const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
          assert.ok(await fits(), "the first screen fits");
          if (pictures && name === "360-light") await page.screenshot({ path: join(pictures, "console-phone.png") });
          await page.goto(`${daemon.url}/sessions/${id}`);
          await transcript(page).getByText("echo: Say hello").waitFor();
          await check(page, axe);
          assert.ok(await fits(), "the session fits");
          const asking = (await by(page, "list", "Sessions").locator("a").count()) ? page : await open({ viewport, colorScheme });
          await asking.goto(daemon.url);
          await by(asking, "list", "Sessions").getByText("Water the plants").click();
          await by(asking, "button", "Approve").waitFor();
          assert.ok(await by(asking, "button", "Deny").isVisible());
          await check(asking, axe);
          assert.ok(await asking.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the question fits");
          if (pictures && name === "1280-dark") await asking.screenshot({ path: join(pictures, "console-dark.png") });
          if (pictures && name === "360-dark") await asking.screenshot({ path: join(pictures, "console-phone-dark.png") });
        }
      }
      await everywhere({ open, axe }, async (page) => {
        await page.goto(`${daemon.url}/settings`);
        await page.getByText("fake/fake").first().waitFor();
        const configuration = by(page, "region", "Configuration");
        await configuration.getByText(/providers\.fake\.api_key = "\*\*\*"/).waitFor();
        assert.doesNotMatch(await configuration.innerText(), /"test"/);
      });
      const page = await open();
      await page.goto(`${daemon.url}/settings`);
      await by(page, "heading", "Settings").waitFor();
      // The first key leads past the list of sessions.
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await page.keyboard.press("Tab");
      assert.ok(await by(page, "link", "doctor").evaluate((link) => link === document.activeElement));
      // The keys, where nobody is typing.
      await page.keyboard.press("?");
      const keys = by(page, "dialog", "Keyboard shortcuts");
      await keys.getByText("Next session").waitFor();
      await check(page, axe);
      await page.keyboard.press("Escape");
      assert.equal(await keys.count(), 0);
      await page.keyboard.press("g");
      await page.keyboard.press("u");
      await page.waitForURL(/\/usage$/);
      await page.keyboard.press("j");
      await page.waitForURL(/\/sessions\/sess_/);
      const first = page.url();
      await page.keyboard.press("j");
      await page.waitForURL((url) => String(url) !== first);
      await page.keyboard.press("k");
      await page.waitForURL(first);
      await page.keyboard.press("c");
      assert.ok(await by(page, "textbox", "Message").evaluate((box) => box === document.activeElement));
      await page.goto(`${daemon.url}/settings`);
      await by(page, "button", "Keyboard shortcuts").click();
      await keys.getByRole("checkbox").uncheck();
      await by(page, "button", "Close").click();
      await page.keyboard.press("g");
      await page.keyboard.press("u");
      assert.match(page.url(), /settings$/);
      await by(page, "button", "Keyboard shortcuts").click();
      await keys.getByRole("checkbox").check();
      await by(page, "button", "Close").click();
      await page.keyboard.press("/");
      assert.ok(await by(page, "searchbox", "Search").evaluate((box) => box === document.activeElement));
      await page.goto(`${daemon.url}/sessions/${id}`);
      await by(page, "textbox", "Message").focus();
      await page.keyboard.type("by keyboard");
      await page.keyboard.press("Enter");
      await transcript(page).getByText("echo: by keyboard").waitFor();
    },
  },
  {
    name: "pictures, live output and always allow",
    config: `[approval]\nkinds = ["exec"]\n`,
    async run({ daemon, model, open }) {
      const page = await open();
      await page.goto(`${daemon.url}/sessions/${await daemon.session(daemon.workspace("w"))}`);
      await page.getByLabel("Attach files").setInputFiles({ name: "dot.png", mimeType: "image/png", buffer: DOT });
      await send(page, "What is this?");
      await transcript(page).getByText("echo: What is this?").waitFor();
      await until("the picture", () => transcript(page).locator("img.attached").evaluate((img) => img.complete && img.naturalWidth === 1));
      assert.match(JSON.stringify(model.calls.at(-1).messages), /data:image\/png;base64/);
      // What is pasted is shown before it is sent, and can be taken away.
      await by(page, "textbox", "Message").evaluate((box, base64) => {
        const data = new DataTransfer();
        data.items.add(new File([Uint8Array.from(atob(base64), (one) => one.charCodeAt(0))], "pasted.png", { type: "image/png" }));
        box.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
      }, DOT.toString("base64"));
      const files = by(page, "list", "Files");
      await until("the thumbnail", () => files.locator("img").evaluate((img) => img.complete && img.naturalWidth === 1));
      await by(files, "button", "Remove pasted.png").click();
      await files.waitFor({ state: "detached" });
      model.say("Twice.",
        { tools: [{ name: "shell", args: { command: "echo first; sleep 2; echo second" } }] },
        { tools: [{ name: "shell", args: { command: "echo first; sleep 2; echo second" } }] },
        { text: "Both ran." },
      );
      await send(page, "Twice.");
      await page.getByRole("button", { name: "Always allow" }).click();
      const output = transcript(page).locator(".call.running .output");
      await until("live output", async () => (await output.count()) > 0 && (await output.first().innerText()).trim() === "first");
      await transcript(page).getByText("Both ran.").waitFor();
      await transcript(page).getByText("approved by an earlier answer").waitFor();
      model.say("Draw.", { tools: [{ name: "diagram", args: { source: "flowchart LR\n  a --> b", language: "mermaid" } }] }, { text: "Drawn." });
      await send(page, "Draw.");
      await by(page, "button", "Approve").click();
      await transcript(page).getByText("Drawn.").waitFor();
      await until("the diagram", () => transcript(page).locator(".call img").evaluate((img) => img.complete && img.naturalWidth > 0));
      model.say("Remember.", { tools: [{ name: "memory_write", args: { target: "long_term", content: "The gate key is under the fern." } }] }, { text: "Noted." });
      await send(page, "Remember.");
      await transcript(page).getByText("Noted.").waitFor();
      await by(page, "button", "Memory").click();
      await by(page, "dialog", "Memory").getByText("under the fern").waitFor();
      await by(page, "textbox", "Find in memory").fill("gate key");
      await by(page, "dialog", "Memory").getByText("under the fern").waitFor();
      await by(page, "button", "Close").click();
    },
  },
  {
    name: "a turn that waits for a decision after a crash",
    config: `${APPROVE_ALL}[recovery]\npolicy = "ask"\n`,
    async run({ daemon, model, open }) {
      const id = await daemon.session(daemon.workspace("w"));
      model.say("Count.", { words: 200, gap: 10 });
      await daemon.post(`sessions/${id}/messages`, { text: "Count.", key: "k" });
      const page = await open();
      await page.goto(`${daemon.url}/sessions/${id}`);
      await transcript(page).getByText("w0020").waitFor();
      await daemon.kill();
      await daemon.start();
      await transcript(page).getByText("the turn is waiting for your decision").waitFor();
      await page.goto(daemon.url);
      await page.getByText("Continue this turn?").waitFor();
      await by(page, "button", "Approve").click();
      await page.goto(`${daemon.url}/sessions/${id}`);
      await transcript(page).locator(".turn-end").waitFor();
      await transcript(page).getByText("w0199").waitFor();
    },
  },
  {
    name: "a question of a subagent",
    config: ASK,
    async run({ daemon, model, open }) {
      model.say("Delegate it.", { tools: [{ name: "spawn_agent", args: { task: "Look around in the cellar." } }] }, { text: "All reported." });
      model.say("Look around in the cellar.", { tools: [{ name: "shell", args: { command: "touch lamp" } }] }, { text: "It is dark." });
      const work = daemon.workspace("w");
      const id = await daemon.session(work, "Delegate it.");
      const page = await open();
      await page.goto(daemon.url);
      await page.locator("pre.command", { hasText: "touch lamp" }).waitFor();
      assert.equal(await by(page, "button", "Approve").count(), 1);
      await page.goto(`${daemon.url}/sessions/${id}`);
      await page.getByRole("group", { name: "Subagents" }).getByText("Look around in the cellar.").waitFor();
      assert.equal(await page.getByText(/in other sessions/).count(), 0);
      await by(page, "button", "Approve").click();
      await transcript(page).getByText("All reported.").waitFor();
      assert.ok(existsSync(join(work, "lamp")));
      await transcript(page).getByRole("link", { name: "Look around in the cellar." }).click();
      await transcript(page).getByText("It is dark.").waitFor();
    },
  },
  {
    name: "an answer counts only for what was shown",
    config: ASK,
    async run({ daemon, model, open }) {
      model.say("Go.", { tools: [{ name: "shell", args: { command: "touch made" } }] }, { text: "Done." });
      const id = await daemon.session(daemon.workspace("w"), "Go.");
      const page = await open();
      await page.goto(`${daemon.url}/sessions/${id}`);
      await by(page, "button", "Approve").waitFor();
      let sent;
      await page.route("**/answer", (route) => {
        sent = JSON.parse(route.request().postData());
        return route.continue({ postData: JSON.stringify({ ...sent, digest: "0".repeat(64) }) });
      });
      await by(page, "button", "Approve").click();
      await page.getByText("the question has changed since it was shown").waitFor();
      assert.match(sent.digest, /^[0-9a-f]{64}$/);
      await page.unroute("**/answer");
      await by(page, "button", "Approve").click();
      await transcript(page).getByText("Done.").waitFor();
      // Lines that look like the head of a diff are shown like any other.
      writeFileSync(join(daemon.workspace("w"), "notes.txt"), "-- a/hidden\n");
      model.say("Hide it.", { tools: [{ name: "write_file", args: { path: "notes.txt", content: "++ b/hidden\n" } }] }, { text: "Hidden." });
      await send(page, "Hide it.");
      await by(page, "button", "Approve").waitFor();
      const shown = await page.getByRole("region", { name: "Diff notes.txt" }).innerText();
      assert.match(shown, /--- a\/hidden/);
      assert.match(shown, /\+\+\+ b\/hidden/);
    },
  },
  {
    name: "eight tabs are live at once",
    config: APPROVE_ALL,
    async run({ daemon, model, open }) {
      const id = await daemon.session(daemon.workspace("w"), "Begin");
      const first = await open();
      const pages = [first];
      for (let n = 1; n < 8; n++) pages.push(await first.context().newPage());
      for (const page of pages) {
        await page.goto(`${daemon.url}/sessions/${id}`);
        await transcript(page).getByText("echo: Begin").waitFor();
      }
      model.say("Count.", { words: 120, gap: 5 });
      await send(pages[3], "Count.");
      const kept = await until("the end", async () => {
        const text = messageText(await daemon.journal(id));
        return text.includes("w0119") && text;
      });
      const words = (text) => text.split(/\s+/).filter(Boolean).join(" ");
      for (const page of pages) {
        await transcript(page).getByText("w0119").waitFor();
        const shown = (await transcript(page).locator(".message.assistant .markdown").allInnerTexts()).join(" ");
        assert.equal(words(shown), words(kept));
      }
      // The tab that reads the stream goes; another one takes over.
      await pages.shift().close();
      await send(pages[2], "again");
      for (const page of pages) await transcript(page).getByText("echo: again").waitFor();
    },
  },
  {
    name: "a session of ten thousand events",
    config: APPROVE_ALL,
    async run({ daemon, model, open }) {
      const work = daemon.workspace("w");
      const id = await daemon.session(work);
      model.say("Look.", ...Array.from({ length: 24 }, (_, step) => ({
        text: "Looking at it.", tools: Array.from({ length: 8 }, (_, n) => ({ name: "read_file", args: { path: `${step}-${n}.txt` } })),
      })), { text: "Seen." });
      for (let n = 0; n < TURNS; n++) {
        await daemon.post(`sessions/${id}/messages`, { text: `Look. ${n}`, key: `k${n}` });
      }
      await until("all turns", async () => (await daemon.journal(id)).messages.filter((one) => JSON.stringify(one).includes("Seen.")).length >= TURNS, 90_000);
      const page = await open();
      await page.goto(daemon.url);
      const link = by(page, "list", "Sessions").locator(`a[href*="${id}"]`);
      await link.waitFor();
      const began = Date.now();
      await link.click();
      await transcript(page).getByText("Seen.").last().waitFor();
      const ms = Date.now() - began;
      const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
      const { last_event_id: events } = await daemon.journal(id);
      console.log(`      ${events} events: shown after ${ms} ms with ${nodes} elements`);
      assert.ok(events >= 10_000, `${events} events`);
      assert.ok(nodes <= 1500, `${nodes} elements`);
      const log = transcript(page);
      await until("older events", async () => {
        await log.evaluate((box) => (box.scrollTop = 0));
        return (await log.innerText()).includes("Look. 0");
      }, 30_000);
      assert.ok((await page.evaluate(() => document.querySelectorAll("*").length)) <= 1500);
      // What is found leads to its place, however far back.
      await page.goto(daemon.url);
      await by(page, "searchbox", "Search").fill('"Look. 1"');
      const found = by(page, "list", "Sessions").locator(`a[href*="${id}#"]`).first();
      await found.click();
      const place = log.getByText("Look. 1", { exact: true });
      await until("the message", async () => (await place.count()) > 0 && place.evaluate((box) => {
        const { top, bottom } = box.getBoundingClientRect();
        return top >= 0 && bottom <= innerHeight;
      }));
    },
  },
  {
    name: "a diff of four megabytes, and typing while an answer streams",
    config: APPROVE_ALL,
    async run({ daemon, model, open }) {
      model.say("Write.", { tools: [{ name: "shell", args: {
        command: "for n in 1 2 3 4; do seq 1 24000 | sed 's/$/ a line of some length to fill it/' > big$n.txt; done",
      } }] }, { text: "Written." });
      const id = await daemon.session(daemon.workspace("w"), "Write.");
      await until("the turn", async () => (await daemon.journal(id)).turns?.[0]?.status === "succeeded", 20_000);
      const page = await open();
      const began = Date.now();
      await page.goto(`${daemon.url}/sessions/${id}`);
      await page.getByRole("region", { name: "Diff big4.txt" }).waitFor();
      const ms = Date.now() - began;
      const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
      console.log(`      the diff: shown after ${ms} ms with ${nodes} elements`);
      assert.ok(nodes <= 2000, `${nodes} elements`);
      await page.goto(`${daemon.url}/sessions/${await daemon.session(daemon.workspace("v"))}`);
      await by(page, "textbox", "Message").waitFor();
      await page.evaluate(() => {
        window.long = [];
        new PerformanceObserver((list) => list.getEntries().forEach((one) => window.long.push(Math.round(one.duration)))).observe({ type: "longtask" });
      });
      model.say("Count.", { words: 400, gap: 10 });
      await send(page, "Count.");
      await by(page, "textbox", "Message").pressSequentially("typed while the answer is being written ".repeat(2), { delay: 25 });
      await transcript(page).getByText("w0399").waitFor();
      assert.match(await by(page, "textbox", "Message").inputValue(), /^typed while .* written $/);
      console.log(`      400 words at 100 a second while typing: long tasks ${JSON.stringify(await page.evaluate(() => window.long))}`);
    },
  },
  {
    name: "runs are started and controlled",
    config: APPROVE_ALL,
    async run({ daemon, open, axe }) {
      const page = await open();
      await page.goto(`${daemon.url}/runs`);
      await by(page, "textbox", "Queue").fill("fleet");
      await by(page, "textbox", "Task").fill("build it");
      await by(page, "button", "Start run").click();
      const row = by(page, "table", "Runs").getByRole("row", { name: /build it/ });
      await row.getByText("awaiting worker").waitFor();
      await by(row, "button", "Pause").click();
      await row.getByText("paused").waitFor();
      await by(row, "combobox", "Mode").selectOption("human_override");
      await until("the mode is set", async () => (await daemon.get("runs")).runs[0].mode === "human_override");
      await by(row, "button", "Resume").click();
      await row.getByText("awaiting worker").waitFor();
      await check(page, axe);
      // The workspace has room for one active run; the refusal is shown, and what was typed stays.
      await by(page, "textbox", "Task").fill("one more");
      await by(page, "button", "Start run").click();
      await page.getByRole("alert").getByText("Active run limit reached").waitFor();
      assert.equal(await by(page, "textbox", "Task").inputValue(), "one more");
      await by(row, "button", "Stop run").click();
      await row.getByText("stopped").waitFor();
    },
  },
  {
    name: "usage over time, of all sessions and of one",
    config: (url) => `${APPROVE_ALL}[providers.openai]\napi = "openai-chat"\nbase_url = "${url}"\napi_key = "test"\n`,
    async run({ daemon, model, open, axe, pictures }) {
      const work = daemon.workspace("w");
      model.say("Priced.", { text: "One.", gap: 400, usage: [10_000, 500, 4_000] });
      const { session: priced } = await daemon.post("sessions", { workspace: work, model: "openai/gpt-5" });
      await daemon.post(`sessions/${priced}/messages`, { text: "Priced.", key: "k" });
      model.say("Look twice.", { tools: [{ name: "list_files", args: {} }], usage: [2_000, 20] }, { text: "Two.", gap: 600, usage: [2_100, 30] });
      const free = await daemon.session(work, "Look twice.");
      const over = (id) => until("the turn", async () => (await daemon.journal(id)).turns?.[0]?.status === "succeeded");
      await over(priced);
      await over(free);
      // A fork shares what was paid; it is not paid again.
      await daemon.post(`sessions/${free}/fork`, { at: null });
      const totals = async (page) => {
        const list = page.locator('dl[aria-label="Totals"]').last();
        await list.waitFor();
        return (await list.innerText()).replace(/\s+/g, " ");
      };
      await everywhere({ open, axe }, async (page) => {
        await page.goto(`${daemon.url}/usage`);
        const shown = await totals(page);
        // gpt-5: 6,000 at $1.25, 4,000 at $0.125 and 500 at $10 for a million.
        assert.match(shown, /Model calls 3 Input 14100 Output 550 Cached 4000 28 % Cost \$0\.013/, shown);
        await page.getByRole("img", { name: /^Tokens, / }).waitFor();
        await page.getByRole("img", { name: /^Time per model call, / }).waitFor();
        await by(page, "table", "Models").getByRole("row", { name: /fake\/fake 2 4100 50 0 0 % unknown/ }).waitFor();
        await by(page, "table", "Models").getByRole("row", { name: /openai\/gpt-5 1 10000 500 4000 40 % \$0\.013/ }).waitFor();
        await page.getByRole("img", { name: /^Cache hits, .* 28 %$/ }).waitFor();
        await page.getByText("The price of 2 calls is not known.").waitFor();
        const added = by(page, "region", "Time added by the daemon");
        await added.getByText(/The last 2 turns since the daemon started/).waitFor();
        await added.getByRole("img", { name: /^Added to a turn, 1, .* to 2, .* ms$/ }).waitFor();
      });
      const page = await open();
      await page.goto(`${daemon.url}/usage`);
      await totals(page);
      if (pictures) await page.screenshot({ path: join(pictures, "console-usage.png") });
      if (pictures) await by(page, "region", "Time added by the daemon").screenshot({ path: join(pictures, "console-overhead.png") });
      // What the daemon added: less than what the whole turns took.
      const rows = by(page, "table", "Time added by the daemon").getByRole("row");
      const added = (await rows.allInnerTexts()).slice(1).map((row) => row.replace(/\s+/g, " "));
      assert.deepEqual(added.map((row) => row.replace(/( [\d.]+ m?s){2}$/, "")), [
        "From your message to the request to the model", "From the model's first words to the page, while the model writes",
        "From a tool call to the next request, without the tool", "Whole turn",
      ]);
      const { turns, parts, share } = await daemon.get("overhead");
      assert.equal(turns.length, 2);
      for (const turn of turns) {
        assert.ok(turn.asked_ms > 0 && turn.total_ms > turn.asked_ms && turn.models_and_tools_ms > 0, JSON.stringify(turn));
      }
      assert.deepEqual(turns.map((turn) => turn.tool_round_trip_ms > 0).sort(), [false, true]);
      assert.ok(parts.total.median_ms <= parts.total.p95_ms && share > 0 && share < 0.5);
      // By keyboard to another range, and to the numbers behind a plot.
      await by(page, "combobox", "Period").selectOption({ label: "Last hour" });
      await page.getByText("Numbers").first().press("Enter");
      await by(page, "table", "Tokens").getByRole("row", { name: /4000 10100 550/ }).waitFor();
      await everywhere({ open, axe }, async (page) => {
        await page.goto(`${daemon.url}/sessions/${free}`);
        await by(page, "button", "Usage").click();
        assert.match(await totals(page), /Model calls 2 Input 4100 Output 50 Cached 0 Cost unknown/);
        await page.getByRole("img", { name: /^Tokens per call, / }).waitFor();
      });
      // What was read is kept, and counts once: the same numbers after a restart.
      const numbers = async () => {
        const { whole } = await daemon.get(`usage?since=${(Date.now() - 3_600_000) * 1000}&step=3600&steps=2`);
        return [whole.calls, whole.usage.total, whole.cost];
      };
      const before = await numbers();
      assert.deepEqual(before.slice(0, 2), [3, 14_650]);
      await daemon.kill();
      await daemon.start();
      assert.deepEqual(await numbers(), before);
      // Those of the daemon's own time begin anew with the process.
      await page.goto(`${daemon.url}/usage`);
      await page.getByText("No turn has ended since the daemon started.").waitFor();
      // New calls appear while the page is open.
      await page.goto(`${daemon.url}/sessions/${free}`);
      await by(page, "button", "Usage").click();
      await totals(page);
      await daemon.post(`sessions/${free}/messages`, { text: "more", key: "k2" });
      await until("the next call", async () => /Model calls 3 Input 5100/.test(await totals(page)));
    },
  },
  {
    name: "the doctor in the browser",
    config: `${APPROVE_ALL}[mcp.servers.lost]\ncommand = ["no-such-program"]\n`,
    async run({ daemon, open, axe }) {
      await everywhere({ open, axe }, async (page) => {
        await page.goto(`${daemon.url}/doctor`);
        const first = by(page, "list", "Findings").getByRole("listitem").first();
        await first.getByText("lost: there is no program no-such-program").waitFor();
        await first.getByText("install no-such-program, or correct mcp.servers.lost.command").waitFor();
        await first.getByText("problem", { exact: true }).waitFor();
      });
      const page = await open();
      await page.goto(`${daemon.url}/settings`);
      await by(page, "link", "doctor").click();
      await page.getByText("is in use by a daemon").waitFor();
      // The file as it is now counts, and a mistake in it is shown.
      writeFileSync(daemon.config, readFileSync(daemon.config, "utf8") + "\n[nonsense]\nx = 1\n");
      await by(page, "button", "Check again").click();
      await page.getByText(/nonsense/).waitFor();
    },
  },
  {
    name: "MCP servers are shown, allowed and revoked",
    config: `${APPROVE_ALL}[mcp.servers.tools]\ncommand = ["python3", "${MCP_SERVER}"]\n[mcp.servers.tools.env]\nSECRET = "hidden-value"\n`,
    async run({ daemon, open, axe }) {
      const work = daemon.workspace("w");
      const note = join(work, "note");
      const define = (words) => writeFileSync(join(work, ".mcp.json"), JSON.stringify({
        mcpServers: { own: { command: "python3", args: [MCP_SERVER, ...words], env: { NOTE: note } }, odd: {}, [HOSTILE]: { command: HOSTILE } },
      }));
      define([]);
      await daemon.session(work, "hello");
      await everywhere({ open, axe }, async (page) => {
        await page.goto(`${daemon.url}/tools`);
        await by(page, "article", "tools").getByText("ready").waitFor();
        await by(page, "article", "own").getByText("not allowed").waitFor();
        await page.getByText(".mcp.json: odd: needs either").waitFor();
      });
      const page = await open();
      await page.goto(`${daemon.url}/tools`);
      const tools = by(page, "article", "tools");
      await tools.getByText("Tools", { exact: true }).click();
      await tools.getByText("echo", { exact: true }).waitFor();
      assert.equal(await page.getByText("hidden-value").count(), 0);
      await page.locator("strong", { hasText: "<img src=x onerror=alert(1)>\\u202e" }).waitFor();
      assert.equal(await page.locator("main img").count(), 0);
      const own = by(page, "article", "own");
      assert.match(await own.locator("pre").innerText(), /NOTE=.*server\.py/);
      assert.ok(!existsSync(note));
      // What is allowed is what was shown: a definition that changed meanwhile is refused.
      const seen = (await daemon.get("tool-servers")).servers.find((one) => one.name === "own");
      define(["--changed"]);
      await assert.rejects(daemon.post("tool-servers/allow", { workspace: work, digests: [seen.digest] }), /not those that were shown/);
      assert.ok(!existsSync(note));
      define([]);
      await own.getByText("--changed").waitFor({ state: "detached" });
      await own.getByRole("button", { name: "Allow" }).press("Enter");
      await own.getByText("ready").waitFor();
      await until("the server runs", () => existsSync(note));
      assert.ok(runsWith(`NOTE=${note}`));
      await by(own, "button", "Revoke").click();
      await own.getByText("not allowed").waitFor();
      await until("the server is gone", () => !runsWith(`NOTE=${note}`));
    },
  },
  {
    name: "a question of an MCP server is a form or a link",
    // Only this era's servers can ask for several sessions at once.
    config: `${APPROVE_ALL}[mcp.servers.tools]\ncommand = ["python3", "${MCP_SERVER}"]\n[mcp.servers.tools.env]\nERA = "modern"\n`,
    async run({ daemon, model, open, axe }) {
      await until("the server is ready", async () => (await daemon.get("tool-servers")).servers[0]?.state === "ready");
      model.say("Book it.", { tools: [{ name: "tools__ask", args: { booking: true } }] }, { text: "Booked." });
      const id = await daemon.session(daemon.workspace("w"), "Book it.");
      const ask = (page) => page.getByRole("article").filter({ hasText: "the MCP server tools asks" });
      // The form of the session is on the overview, too. Nothing in it is HTML, and nothing hides.
      for (const place of ["", `/sessions/${id}`]) {
        await everywhere({ open, axe }, async (page) => {
          await page.goto(daemon.url + place);
          await ask(page).getByText("<i>Which</i> room?\\u202e", { exact: true }).waitFor();
          assert.equal(await by(ask(page), "button", "Approve").count(), 0);
        });
      }
      const [page, home] = [await open(), await open()];
      await home.goto(daemon.url);
      await ask(home).waitFor();
      await page.goto(`${daemon.url}/sessions/${id}`);
      const form = ask(page);
      await form.waitFor();
      // What must be filled in comes first; the rest says that it is optional.
      assert.deepEqual(await form.locator("label > span").allInnerTexts(), [
        "Guests", "Mail <b>to</b>\\u202e", "Meals (optional)", "Newsletter (optional)", "Room (optional)",
      ]);
      await form.getByText("For the invoice.").waitFor();
      const [mail, guests] = [form.getByLabel("Mail"), by(form, "spinbutton", "Guests")];
      assert.equal(await mail.getAttribute("type"), "email");
      assert.equal(await form.getByLabel("Room").evaluate((box) => box.selectedOptions[0].label), "Street");
      // An answer that does not fit is refused, and what was typed stays.
      await mail.fill("ada@a.example");
      await guests.fill("12");
      await by(form, "button", "Answer").click();
      await form.getByRole("alert").getByText("`guests`").waitFor();
      assert.equal(await mail.inputValue(), "ada@a.example");
      // So it does when another session asks meanwhile.
      model.say("Who?", { tools: [{ name: "tools__ask", args: {} }] }, { text: "Known." });
      const other = await daemon.session(daemon.workspace("v"), "Who?");
      await home.getByText("Who are you?").waitFor();
      assert.equal(await mail.inputValue(), "ada@a.example");
      // By keyboard: a number, a box, a choice and several.
      await guests.fill("2");
      await form.getByLabel("Newsletter").press("Space");
      await form.getByLabel("Room").selectOption({ label: "Garden" });
      await form.getByLabel("Meals").selectOption([{ label: "Breakfast" }, { label: "Dinner" }]);
      await by(form, "button", "Answer").press("Enter");
      await transcript(page).getByText("Booked.").waitFor();
      await form.waitFor({ state: "detached" });
      const call = transcript(page).getByRole("region", { name: "Call tools__ask" });
      await call.getByText("question answered").waitFor();
      assert.deepEqual(JSON.parse(await call.locator("pre.output").innerText()), {
        action: "accept",
        content: { mail: "ada@a.example", guests: 2, newsletter: true, room: "g", meals: ["b", "d"] },
      });
      // The other page has only the other question left; it is declined there.
      await home.getByText("<i>Which</i> room?").waitFor({ state: "detached" });
      await by(home, "button", "Decline").click();
      await ask(home).waitFor({ state: "detached" });
      await home.goto(`${daemon.url}/sessions/${other}`);
      await transcript(home).getByText("Known.").waitFor();
      await transcript(home).getByText("question declined").waitFor();
      await transcript(home).locator("pre.output", { hasText: '{"action": "decline"}' }).waitFor();
      // A link opens elsewhere and learns nothing of this page.
      model.say("Log in.", { tools: [{ name: "tools__ask", args: { link: true } }] }, { text: "Logged in." });
      await send(home, "Log in.");
      const link = by(ask(home), "link", "https://a.example/login");
      assert.equal(await link.getAttribute("target"), "_blank");
      assert.equal(await link.getAttribute("rel"), "noopener noreferrer");
      await by(ask(home), "button", "Answer").click();
      await transcript(home).getByText("Logged in.").waitFor();
    },
  },
  {
    name: "a map of subagents and forks",
    config: APPROVE_ALL,
    async run({ daemon, model, open, axe }) {
      model.say("Delegate it.", { tools: [{ name: "spawn_agent", args: { task: "Look around in the <b>cellar</b>." } }] }, { text: "All reported." });
      model.say("Look around in the <b>cellar</b>.", { text: "It is dark." });
      const id = await daemon.session(daemon.workspace("w"), "Delegate it.");
      await until("the turn", async () => (await daemon.journal(id)).turns?.[0]?.status === "succeeded");
      const { session: fork } = await daemon.post(`sessions/${id}/fork`, { at: null });
      await everywhere({ open, axe }, async (page) => {
        await page.goto(`${daemon.url}/sessions/${fork}`);
        await by(page, "button", "Map").click();
        const map = by(page, "dialog", "Map");
        await map.getByText(/fork at event \d+/).waitFor();
        await map.getByText("subagent", { exact: true }).waitFor();
      });
      const page = await open();
      await page.goto(`${daemon.url}/sessions/${fork}`);
      await by(page, "button", "Map").click();
      const map = by(page, "dialog", "Map");
      // The session itself is marked; what it was forked from stands above it and the subagent.
      assert.equal(await map.locator("[aria-current=page]").getAttribute("href"), `/sessions/${fork}`);
      assert.equal(await map.locator("ul.tree > li > .node a").getAttribute("href"), `/sessions/${id}`);
      assert.equal(await map.locator("ul.tree > li > ul > li").count(), 2);
      // Another fork appears by itself, below the one that it was made from.
      await daemon.post(`sessions/${fork}/fork`, { at: null });
      await until("the fork of the fork", async () => (await map.locator("ul.tree > li > ul > li > ul > li").count()) === 1);
      // So does what was summarized, in the session in which it happened and not in its forks.
      await daemon.post(`sessions/${id}/compact`);
      const compaction = map.locator("ul.tree > li > ul > li.compaction");
      await compaction.getByText(/compaction at event \d+/).waitFor();
      await compaction.getByText(/\d+ messages summarized: \d+ tokens → \d+/).waitFor();
      assert.equal(await map.locator("li.compaction").count(), 1);
      await check(page, axe);
      await by(map, "link", "Look around in the <b>cellar</b>.").press("Enter");
      await transcript(page).getByText("It is dark.").waitFor();
      assert.equal(await map.count(), 0);
    },
  },
  {
    name: "who else has a session open",
    config: APPROVE_ALL,
    async run({ daemon, open, axe }) {
      const id = await daemon.session(daemon.workspace("w"), "hello");
      const page = await open();
      await page.goto(`${daemon.url}/sessions/${id}`);
      await transcript(page).getByText("echo: hello").waitFor();
      const tab = await page.context().newPage();
      await tab.goto(`${daemon.url}/sessions/${id}`);
      await transcript(tab).getByText("echo: hello").waitFor();
      // Tabs of one browser are one page; what only reads is not there.
      await daemon.journal(id);
      await tab.evaluate(() => new Promise((done) => (new BroadcastChannel("quintet").onmessage = ({ data }) => data.frame?.event === "beat" && done())));
      // The stream that the page had before may still be counted in one beat, if the daemon was slow to notice its end.
      await until("one page", async () => (await page.getByText(/also open in/).count()) === 0);
      await tab.close();
      const other = await open();
      await other.goto(`${daemon.url}/sessions/${id}`);
      await page.getByText("also open in another page", { exact: true }).waitFor();
      const stop = new AbortController();
      const events = await fetch(`http://127.0.0.1:${daemon.harnessPort}/v1/sessions/${id}/events`, { signal: stop.signal });
      const reader = events.body.getReader();
      await reader.read();
      await page.getByText("also open in another page, harness", { exact: true }).waitFor();
      await check(page, axe);
      await reader.cancel();
      stop.abort();
      await other.context().close();
      await page.getByText(/also open in/).waitFor({ state: "detached" });
    },
  },
  {
    name: "the text on a picture",
    config: APPROVE_ALL,
    async run({ daemon, open, axe }) {
      const page = await open();
      await page.goto(`${daemon.url}/sessions/${await daemon.session(daemon.workspace("w"))}`);
      await page.getByLabel("Attach files").setInputFiles([
        { name: "quarter.png", mimeType: "image/png", buffer: readFileSync(SCREEN) },
        { name: "no picture.png", mimeType: "image/png", buffer: Buffer.from("hello") },
      ]);
      await send(page, "What is this?");
      await transcript(page).getByText("echo: What is this?").waitFor();
      const button = by(transcript(page), "button", "Text").first();
      if (!(await daemon.get("start")).reads_pictures) {
        console.log("      the weights of ocr are not here: only what is not offered was tested");
        return assert.equal(await button.count(), 0);
      }
      await button.press("Enter");
      const text = by(transcript(page), "region", "Text on quarter.png");
      await text.waitFor({ timeout: 60_000 });
      assert.match(await text.innerText(), /Inspection report/);
      const [picture, box] = [await transcript(page).locator(".over img").first().boundingBox(), await transcript(page).locator(".over rect").first().boundingBox()];
      assert.ok(box.x >= picture.x - 2 && box.y >= picture.y - 2 && box.x + box.width <= picture.x + picture.width + 2 && box.y + box.height <= picture.y + picture.height + 2);
      await check(page, axe);
      await by(transcript(page), "button", "Text").last().click();
      await transcript(page).getByRole("alert").waitFor();
      await page.setViewportSize({ width: 360, height: 640 });
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    },
  },
  {
    name: "a message that is spoken",
    config: APPROVE_ALL,
    async run({ daemon, open, program, axe }) {
      const id = await daemon.session(daemon.workspace("w"));
      const file = join(daemon.folder, "said.wav");
      const speaks = (await daemon.get("start")).transcribes;
      if (speaks) execFileSync(program, ["say", "--config", daemon.config, "--out", file, "Open the garden gate. Thank you very much."]);
      const page = await open({
        permissions: ["microphone"],
        flags: ["--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream", `--use-file-for-fake-audio-capture=${file}%noloop`],
      });
      await page.goto(`${daemon.url}/sessions/${id}`);
      const message = by(page, "textbox", "Message");
      await message.fill("Please:");
      if (!speaks) {
        console.log("      the weights of transcription are not here: only what is not offered was tested");
        return assert.equal(await by(page, "button", "Speak").count(), 0);
      }
      await by(page, "button", "Speak").press("Enter");
      await by(page, "button", "Done speaking").waitFor();
      await check(page, axe);
      // The microphone plays the file once, in its own time: 24,000 samples of two bytes a second.
      await page.waitForTimeout((statSync(file).size / 48_000) * 1000 + 500);
      await by(page, "button", "Done speaking").press("Enter");
      await until("the words", async () => /^Please: .*garden/i.test(await message.inputValue()), 60_000);
      await send(page, await message.inputValue());
      await transcript(page).getByText(/echo: Please: .*garden/i).waitFor();
    },
  },
  {
    name: "an answer that is read aloud",
    config: APPROVE_ALL,
    async run({ daemon, model, open, axe }) {
      model.say("Say it.", { text: "**Good** morning.\n\n```sh\nrm -rf everything\n```\n\nThe tea is ready." });
      const id = await daemon.session(daemon.workspace("w"), "Say it.");
      const page = await open({ flags: ["--autoplay-policy=no-user-gesture-required"] });
      const spoken = [];
      page.on("response", async (response) => response.url().endsWith("/api/speak") && spoken.push(await response.json()));
      await page.goto(`${daemon.url}/sessions/${id}`);
      await transcript(page).getByText("The tea is ready.").waitFor();
      const button = by(transcript(page), "button", "Read aloud");
      if (!(await daemon.get("start")).speaks) {
        console.log("      the weights of speech are not here: only what is not offered was tested");
        return assert.equal(await button.count(), 0);
      }
      await button.press("Enter");
      await by(transcript(page), "button", "Stop reading").waitFor();
      await check(page, axe);
      await button.waitFor({ timeout: 60_000 });
      assert.deepEqual(spoken.map((one) => [one.sentences, one.wav?.length > 10_000]), [[2, true], [2, true]]);
      assert.equal(await page.getByRole("alert").count(), 0);
      // Reading ends when the session is left.
      await button.press("Enter");
      await by(transcript(page), "button", "Stop reading").waitFor();
      await by(page, "link", "Quintet").click();
      await page.goBack();
      await button.waitFor();
    },
  },
  {
    name: "the first load",
    config: APPROVE_ALL,
    async run({ daemon, open }) {
      await daemon.session(daemon.workspace("w"), "hello");
      const page = await open();
      let bytes = 0;
      page.on("response", async (response) => {
        if (response.url().endsWith("/app.js")) bytes = gzipSync(await response.body(), { level: 9 }).length;
      });
      const began = Date.now();
      await page.goto(daemon.url);
      await by(page, "list", "Sessions").locator("a").first().waitFor();
      await by(page, "searchbox", "Search").focus();
      const ms = Date.now() - began;
      await page.getByText("live", { exact: true }).waitFor();
      console.log(`      ${bytes} bytes of script (gzip), ${page.requests.length} requests, usable after ${ms} ms`);
      assert.ok(bytes <= 120 * 1024);
      assert.ok(page.requests.length <= 6, page.requests.join(" "));
    },
  },
  {
    name: "a token is asked for once, and other origins are refused",
    embedded: true,
    config: `${APPROVE_ALL}[auth]\ntoken = "sesame"\n`,
    async run({ daemon, open }) {
      for (const path of ["/", "/api/start", "/api/stream"]) {
        assert.equal((await fetch(daemon.url + path)).status, 401, path);
      }
      const bearer = { authorization: "Bearer sesame" };
      assert.equal((await fetch(`${daemon.url}/api/start`, { headers: bearer })).status, 200);
      const origin = { ...bearer, origin: "http://127.0.0.1:1" };
      assert.equal((await fetch(`${daemon.url}/api/start`, { headers: origin })).status, 403);
      const plain = { ...bearer, "content-type": "text/plain" };
      assert.equal((await fetch(`${daemon.url}/api/sessions`, { method: "POST", headers: plain, body: "{}" })).status, 415);
      const page = await open();
      await page.goto(daemon.url);
      await page.getByLabel("Token").fill("wrong");
      await by(page, "button", "Log in").click();
      await page.getByText("Wrong token.").waitFor();
      await page.getByLabel("Token").fill("sesame");
      await by(page, "button", "Log in").click();
      await by(page, "list", "Sessions").waitFor();
      const [cookie] = await page.context().cookies();
      assert.equal(cookie.httpOnly, true);
      assert.equal(cookie.sameSite, "Strict");
    },
  },
];
