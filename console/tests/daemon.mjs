// A real daemon in a folder of its own, which can be killed and started again at the same address.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const freePort = () =>
  new Promise((found) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => found(port));
    });
  });

export class Daemon {
  static async create(program, modelUrl, extra = "") {
    const daemon = new Daemon();
    daemon.program = program;
    daemon.folder = mkdtempSync(join(tmpdir(), "quintet-console-"));
    daemon.port = await freePort();
    daemon.harnessPort = await freePort();
    daemon.config = join(daemon.folder, "quintet.toml");
    writeFileSync(daemon.config, `
data_dir = "${daemon.folder}/data"
default_model = "fake/fake"
[listen]
console = "127.0.0.1:${daemon.port}"
harness = "127.0.0.1:${daemon.harnessPort}"
jarvis = "off"
agent = "off"
agent_health = "off"
windie = "off"
terminal = "off"
[providers.fake]
api = "openai-chat"
base_url = "${modelUrl}"
api_key = "test"
[senses]
embeddings = "off"
${extra}
`);
    await daemon.start();
    return daemon;
  }

  async start() {
    const child = spawn(this.program, ["serve", "--config", this.config], { stdio: ["ignore", "pipe", "pipe"] });
    this.child = child;
    this.log = "";
    child.stderr.on("data", (data) => (this.log += data));
    this.ended = new Promise((done) => child.once("exit", done));
    const lines = createInterface({ input: child.stdout });
    const first = await Promise.race([
      new Promise((read) => lines.once("line", read)),
      this.ended.then(() => { throw new Error(`the daemon ended:\n${this.log}`); }),
    ]);
    this.listeners = JSON.parse(first).listeners;
    this.url = this.listeners.console;
  }

  async kill() {
    this.child.kill("SIGKILL");
    await this.ended;
  }

  async stop() {
    this.child.kill("SIGTERM");
    await this.ended;
    rmSync(this.folder, { recursive: true, force: true });
  }

  workspace(name) {
    const path = join(this.folder, name);
    mkdirSync(path, { recursive: true });
    return path;
  }

  /** The session as another protocol shows it. */
  async journal(session) {
    const answer = await fetch(`http://127.0.0.1:${this.harnessPort}/v1/sessions/${session}`);
    return answer.json();
  }

  async get(path) {
    return (await fetch(`${this.url}/api/${path}`)).json();
  }

  async post(path, body) {
    const answer = await fetch(`${this.url}/api/${path}`, {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
    });
    const read = await answer.json();
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${JSON.stringify(read)}`);
    return read;
  }

  async session(workspace, text) {
    const { session } = await this.post("sessions", { workspace });
    if (text) await this.post(`sessions/${session}/messages`, { text, key: crypto.randomUUID() });
    return session;
  }
}
