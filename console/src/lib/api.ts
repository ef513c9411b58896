// Requests to the daemon.

export class ApiError extends Error {
  constructor(public status: number, message: string) {
    super(message);
  }
}

async function answer<T>(response: Response): Promise<T> {
  const body = await response.json().catch(() => ({}));
  if (response.status === 401) location.reload();
  if (!response.ok) throw new ApiError(response.status, body.error ?? response.statusText);
  return body as T;
}

export async function get<T>(path: string, parameters: Record<string, string | number> = {}): Promise<T> {
  const query = new URLSearchParams(
    Object.entries(parameters).map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
  return answer<T>(await fetch(`/api/${path}${query && `?${query}`}`));
}

export async function post<T = Record<string, unknown>>(path: string, body: unknown = {}): Promise<T> {
  return answer<T>(
    await fetch(`/api/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    }),
  );
}

export function message(error: unknown): string {
  return error instanceof ApiError ? error.message : "The daemon is not responding.";
}
