// Drives the console in Debian's Chromium against a real daemon with a scripted model.
// usage: node tests/run.mjs [PROGRAM] [--pictures] [--only NAME] [--from-disk]
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { Daemon } from "./daemon.mjs";
import { startModel } from "./model.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const args = process.argv.slice(2);
const option = (name) => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined);
const only = option("--only");
const program = resolve(args.find((arg) => !arg.startsWith("--") && arg !== only) ?? join(here, "../../target/debug/quintet"));
const assets = join(here, "../../crates/dialects/src/console/assets");

const FLAGS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];

const EXECUTABLE = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath: EXECUTABLE, args: FLAGS });
const model = await startModel();
let failed = 0;

/** A page that notes what must never happen: foreign requests, errors, violations of the policy. With `flags` it has a browser of its own. */
async function open(daemon, { flags, ...options } = {}) {
  const own = flags && (await chromium.launch({ executablePath: EXECUTABLE, args: [...FLAGS, ...flags] }));
  const context = await (own ?? browser).newContext({ viewport: { width: 1280, height: 800 }, colorScheme: "light", ...options });
  const page = await context.newPage();
  page.own = own;
  page.setDefaultTimeout(60_000);
  page.trouble = [];
  page.requests = [];
  page.on("request", (request) => {
    const url = new URL(request.url());
    page.requests.push(url.pathname);
    if (!["blob:", "data:"].includes(url.protocol) && url.origin !== new URL(daemon.url).origin) page.trouble.push(`foreign: ${url}`);
  });
  page.on("pageerror", (error) => page.trouble.push(String(error)));
  page.on("dialog", (dialog) => { page.trouble.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
  page.on("console", (message) => {
    const text = message.text();
    if (message.type() === "error" && !/Failed to load resource|ERR_CONNECTION/.test(text)) page.trouble.push(text);
  });
  if (args.includes("--from-disk")) {
    const names = new Map(readdirSync(assets).map((name) => [`/${name}`, join(assets, name)]));
    const file = (url) => (/^\/(sessions\/.*|settings|runs|usage|tools|doctor)?$/.test(url.pathname) ? names.get("/index.html") : names.get(url.pathname));
    await context.route((url) => file(url) !== undefined, (route) =>
      route.fulfill({ path: file(new URL(route.request().url())) }));
  }
  return page;
}

const { tests } = await import("./console.mjs");
for (const { name, config, embedded, run } of tests) {
  if ((only && !name.includes(only)) || (embedded && args.includes("--from-disk"))) continue;
  const began = Date.now();
  model.calls.length = 0;
  let daemon;
  const pages = [];
  try {
    daemon = await Daemon.create(program, model.url, typeof config === "function" ? config(model.url) : config);
    const pictures = args.includes("--pictures") ? join(here, "../../docs/pictures") : undefined;
    await run({
      daemon, model, pictures, program,
      axe: readFileSync(join(here, "../node_modules/axe-core/axe.min.js"), "utf8"),
      open: async (options) => {
        const page = await open(daemon, options);
        pages.push(page);
        return page;
      },
    });
    for (const page of pages) assert.deepEqual(page.trouble, []);
    console.log(`ok    ${name} (${Date.now() - began} ms)`);
  } catch (error) {
    failed++;
    console.log(`FAIL  ${name}\n${error.stack}`);
    for (const [n, page] of pages.entries()) {
      console.log("trouble:", page.trouble);
      await page.screenshot({ path: `/tmp/console-failed-${n}.png` }).catch(() => {});
    }
    if (daemon?.log) console.log(daemon.log.split("\n").slice(-8).join("\n"));
  } finally {
    for (const page of pages) {
      await page.context().close();
      await page.own?.close();
    }
    await daemon?.stop().catch(() => {});
  }
}
await browser.close();
model.close();
console.log(failed ? `${failed} failed` : "all passed");
process.exit(failed ? 1 : 0);
