#!/usr/bin/env python3
"""Records `quintet chat` in a real terminal and writes docs/pictures/chat.svg, an animated picture.

Usage: record_chat.py PATH_OF_QUINTET       (needs tmux)

A daemon with the demo model serves a temporary folder; tmux is the terminal. Each frame is what the
screen showed at that moment, colours included.
"""
import html
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COLUMNS, ROWS = 92, 26
CELL_WIDTH, CELL_HEIGHT = 8.4, 18
WAIT_LIMIT_S = 30
COLOURS = ["#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee9"]
BRIGHT = ["#6b7689", "#ff7b86", "#b5e890", "#ffd68a", "#82c4ff", "#e29bf5", "#7fdbe6", "#ffffff"]


def colour_256(number):
    """The hexadecimal value of one of the 256 terminal colours."""
    if number < 16:
        return (COLOURS + BRIGHT)[number]
    if number >= 232:
        return "#%02x%02x%02x" % ((8 + 10 * (number - 232),) * 3)
    number -= 16
    levels = (0, 95, 135, 175, 215, 255)
    return "#%02x%02x%02x" % (levels[number // 36], levels[number // 6 % 6], levels[number % 6])


class Style:
    """The attributes that escape sequences set."""

    def __init__(self):
        self.fg, self.bg, self.bold, self.dim, self.reverse = None, None, False, False, False

    def colours(self):
        """Foreground and background as they are shown; None is the terminal's own."""
        if self.reverse:
            return self.bg or "#1e222a", self.fg or "#d8dee9"
        return self.fg, self.bg

    def apply(self, codes):
        codes = [int(code or 0) for code in codes.split(";")]
        while codes:
            code = codes.pop(0)
            if code == 0:
                self.__init__()
            elif code in (1, 2):
                self.bold, self.dim = self.bold or code == 1, self.dim or code == 2
            elif code == 22:
                self.bold = self.dim = False
            elif code in (7, 27):
                self.reverse = code == 7
            elif code in (38, 48) and codes:
                kind = codes.pop(0)
                value = colour_256(codes.pop(0)) if kind == 5 else "#%02x%02x%02x" % tuple(codes[:3])
                codes = codes if kind == 5 else codes[3:]
                self.fg, self.bg = (value, self.bg) if code == 38 else (self.fg, value)
            elif 30 <= code <= 37 or 90 <= code <= 97:
                self.fg = COLOURS[code - 30] if code < 40 else BRIGHT[code - 90]
            elif 40 <= code <= 47:
                self.bg = COLOURS[code - 40]
            elif code == 39:
                self.fg = None
            elif code == 49:
                self.bg = None


def draw_line(text, row):
    """One line of the screen as SVG elements."""
    style, column, out = Style(), 0, []
    for part in re.split(r"(\x1b\[[0-9;]*m)", text):
        if part.startswith("\x1b"):
            style.apply(part[2:-1])
            continue
        if not part:
            continue
        x, y, width = column * CELL_WIDTH, row * CELL_HEIGHT, len(part) * CELL_WIDTH
        foreground, background = style.colours()
        if background:
            out.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{CELL_HEIGHT}" fill="{background}"/>')
        if part.strip():
            attributes = f' fill="{foreground}"' if foreground else ""
            attributes += ' font-weight="bold"' if style.bold else ""
            attributes += ' opacity="0.6"' if style.dim else ""
            out.append(
                f'<text x="{x:.1f}" y="{y + 13}" textLength="{width:.1f}" xml:space="preserve"{attributes}>'
                f"{html.escape(part)}</text>"
            )
        column += len(part)
    return "".join(out)


def picture(frames):
    """All frames, shown one after the other, as one SVG. A frame is (screen, seconds)."""
    width, height = COLUMNS * CELL_WIDTH + 24, ROWS * CELL_HEIGHT + 24
    total, begin, groups, rules = sum(seconds for _, seconds in frames), 0.0, [], []
    for number, (screen, seconds) in enumerate(frames):
        end = begin + seconds
        start_percent, end_percent = 100 * begin / total, 100 * end / total
        rules.append(
            f"@keyframes f{number}{{0%,{start_percent:.3f}%{{visibility:hidden}}"
            f"{start_percent + 0.001:.3f}%,{end_percent:.3f}%{{visibility:visible}}"
            f"{min(end_percent + 0.001, 100):.3f}%,100%{{visibility:hidden}}}}"
            f"#f{number}{{visibility:hidden;animation:f{number} {total:.1f}s infinite}}"
        )
        lines = "".join(draw_line(line, row) for row, line in enumerate(screen.split("\n")[:ROWS]))
        groups.append(f'<g id="f{number}">{lines}</g>')
        begin = end
    # Where motion is unwanted the last frame stands still.
    last = len(frames) - 1
    rules.append(f"@media(prefers-reduced-motion:reduce){{g{{animation:none!important}}#f{last}{{visibility:visible}}}}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'font-family="ui-monospace,Menlo,Consolas,monospace" font-size="14" fill="#d8dee9">'
        f"<title>quintet chat: a question, a command that is approved, and the answer</title>"
        f'<style>{"".join(rules)}</style><rect width="100%" height="100%" rx="8" fill="#1e222a"/>'
        f'<g transform="translate(12 12)">{"".join(groups)}</g></svg>\n'
    )


class Terminal:
    """`quintet chat` in a tmux window of its own server."""

    def __init__(self, home, command):
        self.tmux = ["tmux", "-S", str(home / "tmux.sock")]
        size = ["-x", str(COLUMNS), "-y", str(ROWS)]
        subprocess.run([*self.tmux, "-f", "/dev/null", "new-session", "-d", *size, command], check=True)
        subprocess.run([*self.tmux, "set", "-g", "status", "off"], check=True)
        self.frames = []

    def screen(self):
        return subprocess.run([*self.tmux, "capture-pane", "-ep"], check=True, capture_output=True, text=True).stdout

    def show(self, seconds):
        self.frames.append((self.screen(), seconds))

    def type(self, text):
        for index in range(0, len(text), 3):
            subprocess.run([*self.tmux, "send-keys", "-l", "--", text[index : index + 3]], check=True)
            time.sleep(0.05)
            self.show(0.12)

    def key(self, name):
        subprocess.run([*self.tmux, "send-keys", name], check=True)

    def until(self, words):
        """Shows every new screen until these words are on it."""
        end = time.monotonic() + WAIT_LIMIT_S
        while words not in re.sub(r"\x1b\[[0-9;]*m", "", self.screen()):
            if time.monotonic() > end:
                sys.exit(f"{words!r} did not appear:\n{self.screen()}")
            if not self.frames or self.frames[-1][0] != self.screen():
                self.show(0.15)
            time.sleep(0.05)

    def close(self):
        subprocess.run([*self.tmux, "kill-server"], check=False)


def main(program):
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        workspace = home / "shop"
        workspace.mkdir()
        (workspace / "prices.csv").write_text("tea,3.20\ncoffee,4.10\ncake,2.75\n")
        (workspace / "README.md").write_text("# A small shop\n")
        others = ["harness", "jarvis", "agent", "agent_health", "windie", "console", "openai"]
        listen = [part for other in others for part in ("--listen", f"{other}=off")]
        serve = [program, "serve", "--data-dir", str(home / "data"), "--set", "default_model=demo/demo", *listen]
        socket = home / "chat.sock"
        daemon = subprocess.Popen([*serve, "--listen", f"terminal={socket}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        json.loads(daemon.stdout.readline())
        terminal = Terminal(home, f"cd {workspace} && TERM=xterm-256color {program} chat --no-history --socket {socket}")
        try:
            terminal.until("ready")
            terminal.show(1)
            terminal.type("run: sort -t, -k2 -n prices.csv | tee sorted.csv")
            terminal.show(0.6)
            terminal.key("Enter")
            terminal.until("wants to run a command")
            terminal.show(2.5)
            time.sleep(0.7)  # A yes in the first half second does not count.
            terminal.key("y")
            terminal.until("tokens in")
            terminal.show(2.5)
            terminal.type("count to 40")
            terminal.key("Enter")
            terminal.until("39 40")
            terminal.show(4)
        finally:
            terminal.close()
            daemon.send_signal(signal.SIGTERM)
            daemon.wait()
        target = Path(__file__).with_name("chat.svg")
        target.write_text(picture(terminal.frames).replace(str(home), "/home/me"))
        print(f"{target.name}: {len(terminal.frames)} frames, {os.path.getsize(target)} bytes")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
