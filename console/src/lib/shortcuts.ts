// The keyboard shortcuts of the page. Those of a single character can be switched off, because speech input may type them by accident.

/** Keys and what they do, in the order in which they are listed. */
export const SHORTCUTS: [string[], string][] = [
  [["/"], "Search all messages"],
  [["n"], "New session"],
  [["c"], "Write a message"],
  [["j"], "Next session"],
  [["k"], "Previous session"],
  [["g", "o"], "Overview"],
  [["g", "u"], "Usage"],
  [["g", "r"], "Runs"],
  [["g", "m"], "MCP servers"],
  [["g", "d"], "Doctor"],
  [["g", "s"], "Settings"],
  [["Enter"], "Send the message"],
  [["Shift", "Enter"], "New line in the message"],
  [["Escape"], "Stop the turn (in the message box)"],
  [["?"], "Show this list"],
];

/** The pages that `g` and a letter open. */
export const PLACES: Record<string, string> = {
  o: "/", u: "/usage", r: "/runs", m: "/tools", d: "/doctor", s: "/settings",
};

const OFF = "shortcuts off";

export const lettersAreOn = (): boolean => localStorage.getItem(OFF) === null;

export function switchLetters(on: boolean) {
  if (on) localStorage.removeItem(OFF);
  else localStorage.setItem(OFF, "");
}
