"""Runs what the README shows, as it is shown, and compares what it prints.

The tour's blocks are pasted into one shell; `make run` among them starts the daemon with the flags that the
Makefile has. The block below a command is what it prints, in which `…` stands for anything. Differences from
what a reader does: the program may be a debug build, the ports are free ones, and `pkill` reaches this daemon
alone. The commands in the text are run too. Usage: run.py QUINTET
"""

import json
import os
import pathlib
import queue
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).parents[4]
BUILT = "target/release/quintet"
MAKE_RUN = "make run MODEL=demo"
PORTS = {
    "harness": 8787,
    "jarvis": 8100,
    "agent": 8080,
    "agent_health": 8081,
    "windie": 8765,
    "console": 8700,
    "openai": 8701,
}
# Nothing in the tour takes this long, unless it hangs.
TIMEOUT_SECONDS = 60
END = "::end of block::"
# How the demo model begins where it has no rule for a question.
CHAT_ANSWER = "You said: What is in this folder?"


def section(readme, title):
    """The text below a heading, up to the next."""
    return re.split(r"^## ", readme.split(f"## {title}\n")[1], flags=re.M)[0]


def blocks(text):
    """The commands, each with what it prints."""
    fences = re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.M | re.S)
    for index, (kind, code) in enumerate(fences):
        if kind == "sh":
            below = fences[index + 1] if index + 1 < len(fences) else ("", "")
            yield code.strip(), below[1].strip() if below[0] == "text" else ""


def clean_environment(home):
    """The environment of a reader who has set nothing: neither for the program nor for make."""
    foreign = re.compile(
        r"QUINTET_|OPENAI_|HARNESS_|JARVIS_|.*_API_KEY$|DBUS_SESSION|MAKE|MFLAGS$|(CONFIG|DATA_DIR|ARGS|MODEL|NAME)$"
    )
    env = {name: value for name, value in os.environ.items() if not foreign.match(name)}
    return env | {"HOME": home, "XDG_RUNTIME_DIR": home, "QUINTET_LOG": "warn", "LC_ALL": "C.UTF-8"}


def makefile_runs(env):
    """What `make run` would run of the program that it builds."""
    lines = subprocess.run(
        ["make", "-n", *MAKE_RUN.split()[1:]], cwd=ROOT, env=env, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    runs = [line.split("||")[0] for line in lines if line.strip().startswith(BUILT)]
    assert len(runs) == 2, f"`make run` does not run what this test expects: {runs}"
    return [shlex.split(run)[1:] for run in runs]


def free_ports():
    sockets = {name: socket.create_server(("127.0.0.1", 0)) for name in PORTS}
    ports = {name: bound.getsockname()[1] for name, bound in sockets.items()}
    for bound in sockets.values():
        bound.close()
    return ports


class Reader:
    def __init__(self, home, quintet):
        self.home, self.quintet, self.ports = home, quintet, free_ports()
        self.env = clean_environment(home)
        self.daemon = None
        self.shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, cwd=home, env=self.env, text=True,
        )
        self.lines = queue.Queue()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.shell.stdout:
            self.lines.put(line)

    def make_run(self):
        pull, serve = makefile_runs(self.env)
        subprocess.run([self.quintet, *pull], cwd=self.home, env=self.env, check=True)
        for name, port in self.ports.items():
            serve += ["--listen", f"{name}=127.0.0.1:{port}"]
        self.daemon = subprocess.Popen(
            [self.quintet, *serve], cwd=self.home, env=self.env, stdout=subprocess.PIPE, text=True
        )
        ready = self.daemon.stdout.readline()
        assert json.loads(ready or "{}").get("ready"), f"the daemon did not start: {ready}"
        assert pathlib.Path(self.home, ".quintet").is_dir(), "make run keeps its data elsewhere"
        self.paste(f'pkill() {{ [ "$*" = "-9 -x quintet" ] && kill -9 {self.daemon.pid}; }}')

    def adapted(self, code):
        for name, port in PORTS.items():
            code = code.replace(f"127.0.0.1:{port}", f"127.0.0.1:{self.ports[name]}")
        return code.replace(BUILT, shlex.quote(self.quintet))

    def run(self, code, statuses=(0,), cwd=None):
        """What a command prints in a shell of its own, in which nothing comes on standard input."""
        done = subprocess.run(
            ["bash", "-c", self.adapted(code)], cwd=cwd or self.home, env=self.env, text=True,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_SECONDS,
        )
        if done.returncode not in statuses:
            raise SystemExit(f"{code} ends with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def paste(self, code):
        code = self.adapted(code)
        self.shell.stdin.write(f"{code}\necho '{END}'\n")
        self.shell.stdin.flush()
        printed = ""
        while True:
            try:
                line = self.lines.get(timeout=TIMEOUT_SECONDS)
            except queue.Empty:
                raise SystemExit(f"this hangs:\n{code}\nafter it printed:\n{printed}")
            before, end, _ = line.partition(END)
            printed += before
            if end:
                return printed.strip()

    def close(self):
        for process in (self.shell, self.daemon):
            if process and process.poll() is None:
                process.kill()
                process.wait()


def check(code, printed, expected):
    pattern = re.escape(expected).replace("…", "[^\n]*")
    if not re.fullmatch(pattern, printed):
        raise SystemExit(f"the README shows\n{code}\nand says that it prints\n{expected}\nIt prints\n{printed}")


def expect(part, code, printed):
    if part not in printed:
        raise SystemExit(f"{code} should print {part!r}. It prints\n{printed}")


def check_text(readme, reader):
    """Runs the commands that stand in the text, with the daemon of the tour and its session."""
    shown = set(re.findall(r"`([^`\n]+)`", readme))

    def run(code, part, **options):
        assert code in shown, f"the README does not show `{code}` any more"
        expect(part, code, reader.run(code, **options))

    run(f'{BUILT} chat -p "What is in this folder?"', CHAT_ANSWER)
    run(f"{BUILT} models", "demo/demo")
    run(f"{BUILT} config", "listen.harness = ")
    run("make help", "make run", cwd=ROOT)
    # No server answers for the model of the example, and `doctor` says so.
    run(f"{BUILT} doctor --config quintet.toml", "mine/qwen3-coder", statuses=(0, 1))
    config = f"{BUILT} config --config quintet.toml"
    expect('default_model = "mine/qwen3-coder"', config, reader.run(config))
    events = "curl -sN $Q/v1/sessions/$S/events"
    assert events in shown, f"the README does not show `{events}` any more"
    expect("turn_completed", events, reader.paste(f"{events} --max-time 2 | grep -m1 turn_completed"))


def main(quintet):
    readme = (ROOT / "README.md").read_text()
    config = re.search(r"```toml\n# quintet.toml\n(.*?)```", readme, flags=re.S)[1]
    with tempfile.TemporaryDirectory() as home:
        reader = Reader(home, quintet)
        try:
            steps = 0
            for code, expected in blocks(section(readme, "A two-minute tour")):
                steps += 1
                if code == MAKE_RUN:
                    if reader.daemon:
                        reader.daemon.wait(TIMEOUT_SECONDS)
                    reader.make_run()
                else:
                    check(code, reader.paste(code), expected)
            pathlib.Path(home, "quintet.toml").write_text(config)
            check_text(readme, reader)
        finally:
            reader.close()
    print(f"the README's tour of {steps} steps prints what it says")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
