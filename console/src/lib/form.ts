// Forms that a running call asks the user to fill in: a JSON Schema of plain fields.

export interface Choice {
  value: unknown;
  label: string;
}

export interface Field {
  name: string;
  label: string;
  about: string;
  kind: "choice" | "choices" | "flag" | "number" | "text";
  input: string;
  required: boolean;
  choices: Choice[];
}

type Schema = Record<string, any>;

const INPUTS: Record<string, string> = { email: "email", uri: "url", date: "date" };

function choices(schema: Schema | undefined): Choice[] {
  const titled = schema?.["oneOf"] ?? schema?.["anyOf"];
  if (Array.isArray(titled)) return titled.map((one) => ({ value: one.const, label: String(one.title ?? one.const) }));
  const values: unknown[] = schema?.["enum"] ?? [];
  return values.map((value, n) => ({ value, label: String(schema?.["enumNames"]?.[n] ?? value) }));
}

function kind(schema: Schema): Field["kind"] {
  if (schema["type"] === "array") return "choices";
  if (choices(schema).length > 0) return "choice";
  if (schema["type"] === "boolean") return "flag";
  return schema["type"] === "number" || schema["type"] === "integer" ? "number" : "text";
}

/** The fields of a form, required ones first. */
export function fields(schema: Schema): Field[] {
  const all = Object.entries((schema["properties"] ?? {}) as Record<string, Schema>).map(([name, one]): Field => ({
    name,
    label: one["title"] ?? name,
    about: one["description"] ?? "",
    kind: kind(one),
    input: INPUTS[one["format"]] ?? "text",
    required: (schema["required"] ?? []).includes(name),
    choices: choices(one["type"] === "array" ? one["items"] : one),
  }));
  return all.sort((a, b) => Number(b.required) - Number(a.required));
}

/** The initial values of a form. */
export function defaults(schema: Schema): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, one] of Object.entries((schema["properties"] ?? {}) as Record<string, Schema>)) {
    if (one["default"] !== undefined) values[name] = one["default"];
    else if (one["type"] === "boolean") values[name] = false;
    else if (one["type"] === "array") values[name] = [];
  }
  return values;
}

/** The values to send, without empty fields. */
export function filled(values: Record<string, unknown>): Record<string, unknown> {
  const given = ([, value]: [string, unknown]) => value !== "" && value !== null && value !== undefined;
  return Object.fromEntries(Object.entries(values).filter(given));
}
