/** Measures how a flood of password guesses affects others: a user with cached credentials, and new users. */
import { appendFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../support/programs/free-port.ts';
import { booking } from './booking.ts';
import { writeConfiguration } from './configuration.ts';
import { quantile, untilReady } from './measure.ts';
import { startFrontdesk } from './servers.ts';

export interface LoginFigures {
  /** The 99th percentile of the latency of a user with cached credentials, in milliseconds. */
  readonly calmMs: number;
  readonly floodedMs: number;
  /** The slowest first request of a newcomer during the flood, in milliseconds. */
  readonly newcomerMs: number;
}

const phaseMs = 10_000;
const requestEveryMs = 5;
const guessEveryMs = 10;
/** Guesses from a single address would be rejected without a check after thirty failures. */
const guessingAddresses = 50;
const newcomers = 20;
/** The time until each address has sent its first guess. A newcomer in this time may have to wait behind them. */
const floodAheadMs = 1000;
const path = `/v1/hotels/bookings/${booking.id}`;

export async function measureLogins(directory: string): Promise<LoginFigures> {
  const port = await freePort();
  const configDir = writeConfiguration(join(directory, 'logins'), 'in-process', { upstreamPort: 0, ratelimitPort: 0 });
  addNewcomers(join(configDir, 'users.yaml'));
  const env = { PORT: String(port), LOG_LEVEL: 'error', TRUSTED_PROXIES: '127.0.0.1' };
  const child = startFrontdesk(directory, env, ['--only', 'gateway,auth,ratelimit,hotel'], { configDir });
  const agent = new Agent({ keepAlive: true });
  const ask = (address: string, user: string, password: string) =>
    durationOf({ port, agent, headers: headersOf(address, user, password) });
  try {
    await untilReady(port, path, headersOf('192.0.2.1', 'demo', 'demo'));
    const remembered = () => ask('192.0.2.1', 'demo', 'demo');
    await every(requestEveryMs, phaseMs / 2, remembered);
    const calm = await every(requestEveryMs, phaseMs, remembered);
    const guess = (turn: number) => ask(`198.51.100.${turn % guessingAddresses}`, `user-${turn % 1000}`, `${turn}`);
    const flood = every(guessEveryMs, floodAheadMs + phaseMs, guess);
    await sleep(floodAheadMs);
    const signIn = (turn: number) => ask(`203.0.113.${turn}`, `newcomer-${turn}`, 'guest');
    const signIns = every(phaseMs / newcomers, phaseMs, signIn);
    const flooded = await every(requestEveryMs, phaseMs, remembered);
    await flood;
    return {
      calmMs: quantile(calm, 0.99),
      floodedMs: quantile(flooded, 0.99),
      newcomerMs: Math.max(...(await signIns)),
    };
  } finally {
    agent.destroy();
    await child.stop();
  }
}

/** Adds users with the password of guest, who is the last user in the file. */
function addNewcomers(usersFile: string): void {
  const hash = '"$scrypt$ln=14,r=8,p=1$ktZlF6TAGqEfxclWGOdQjg$4044K1BHeU6f4lB2+tSE+GlSagAztuw9vBuZiQ4qcUo"';
  for (let index = 0; index < newcomers; index += 1)
    appendFileSync(usersFile, `  - name: newcomer-${index}\n    password_hash: ${hash}\n`);
}

function headersOf(address: string, user: string, password: string) {
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  return { 'x-forwarded-for': address, authorization, accept: 'application/json' };
}

/** Starts requests at a fixed pace, however long they take. */
async function every(ms: number, forMs: number, send: (turn: number) => Promise<number>): Promise<number[]> {
  const sent: Promise<number>[] = [];
  const startMs = performance.now();
  for (let turn = 0; turn * ms < forMs; turn += 1) {
    await sleep(Math.max(0, startMs + turn * ms - performance.now()));
    sent.push(send(turn));
  }
  return Promise.all(sent);
}

/** Infinite if the request is rejected because too many passwords are being checked. */
function durationOf(options: { port: number; agent: Agent; headers: Record<string, string> }): Promise<number> {
  const startMs = performance.now();
  return new Promise((resolve, reject) => {
    get({ ...options, path, host: '127.0.0.1' }, (response) => {
      const isRefused = response.statusCode === 503;
      response.resume().once('end', () => resolve(isRefused ? Number.POSITIVE_INFINITY : performance.now() - startMs));
    }).on('error', reject);
  });
}
