/** Sends single requests as a client would: with credentials, at a fixed pace, and reporting the outcome. */
import { get, type RequestOptions } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

export function basicAuthorization(user: string, password: string): string {
  return `Basic ${btoa(`${user}:${password}`)}`;
}

/** The headers of a request by the demo user, with a header that becomes a rate-limit label. */
export const demoHeaders = {
  'x-gateway-test-allow': 'bench',
  authorization: basicAuthorization('demo', 'demo'),
  accept: 'application/json',
};

/** The headers of a client at `address`, as a trusted proxy forwards them. */
export function headersFrom(address: string, user: string, password: string): Readonly<Record<string, string>> {
  return { 'x-forwarded-for': address, authorization: basicAuthorization(user, password), accept: 'application/json' };
}

/** Resolves to the status of the response, `cut off`, or the error. */
export function outcomeOf(options: RequestOptions): Promise<string> {
  return new Promise((resolve) => {
    get({ ...options, host: '127.0.0.1' }, (response) => {
      response.resume().once('close', () => resolve(response.complete ? String(response.statusCode) : 'cut off'));
    }).on('error', (error) => resolve(String(error)));
  });
}

/** Resolves when the server responds with 200. Rejects after two minutes, because many servers start together. */
export async function untilReady(port: number, path: string, headers: Readonly<Record<string, string>>): Promise<void> {
  const giveUpAtMs = performance.now() + 120_000;
  while ((await outcomeOf({ port, path, headers, agent: false })) !== '200') {
    if (performance.now() > giveUpAtMs) throw new Error(`no 200 from 127.0.0.1:${port}${path}`);
    await sleep(5);
  }
}

/** Calls `send` at a fixed pace, however long each call takes, and resolves to all results. */
export async function atFixedPace<T>(
  everyMs: number,
  durationMs: number,
  send: (turn: number) => Promise<T>,
): Promise<T[]> {
  const results: Promise<T>[] = [];
  const startMs = performance.now();
  for (let turn = 0; turn * everyMs < durationMs; turn += 1) {
    await sleep(Math.max(0, startMs + turn * everyMs - performance.now()));
    results.push(send(turn));
  }
  return Promise.all(results);
}

/** Counts the outcome unless it is 200. */
export function countFailure(failures: Map<string, number>, outcome: string): void {
  if (outcome !== '200') failures.set(outcome, (failures.get(outcome) ?? 0) + 1);
}
