/** Measures how a flood of password guesses affects others: a user with cached credentials, and new users. */
import { appendFileSync } from 'node:fs';
import { Agent, type RequestOptions } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../support/programs/free-port.ts';
import { booking } from '../clients/booking.ts';
import { atFixedPace, headersFrom, outcomeOf, untilReady } from '../clients/requests.ts';
import { writeConfiguration } from '../processes/configuration.ts';
import { startFrontdesk } from '../processes/start-servers.ts';
import type { MeasuredRow } from '../table.ts';
import { quantile } from './samples.ts';

const phaseMs = 10_000;
const requestEveryMs = 5;
const guessEveryMs = 10;
/** Guesses from a single address would be rejected without a check after thirty failures. */
const guessingAddresses = 50;
const newcomers = 20;
/** The time until each address has sent its first guess. A newcomer that arrives earlier may have to wait for these. */
const headStartMs = 1000;
const path = `/v1/hotels/bookings/${booking.id}`;

export async function measureLogins(directory: string): Promise<MeasuredRow[]> {
  const port = await freePort();
  const configDir = writeConfiguration(join(directory, 'logins'), 'in-process');
  addNewcomers(join(configDir, 'users.yaml'));
  const env = { PORT: String(port), CONFIG_DIR: configDir, TRUSTED_PROXIES: '127.0.0.1' };
  const child = startFrontdesk(directory, env);
  const agent = new Agent({ keepAlive: true });
  const request = (address: string, user: string, password: string) =>
    durationOf({ port, agent, path, headers: headersFrom(address, user, password) });
  try {
    await untilReady(port, path, headersFrom('192.0.2.1', 'demo', 'demo'));
    const sendAsKnownUser = () => request('192.0.2.1', 'demo', 'demo');
    await atFixedPace(requestEveryMs, phaseMs / 2, sendAsKnownUser);
    const before = await atFixedPace(requestEveryMs, phaseMs, sendAsKnownUser);
    const guess = (turn: number) => request(`198.51.100.${turn % guessingAddresses}`, `user-${turn % 1000}`, `${turn}`);
    const flood = atFixedPace(guessEveryMs, headStartMs + phaseMs, guess);
    await sleep(headStartMs);
    const signIn = (turn: number) => request(`203.0.113.${turn}`, `newcomer-${turn}`, 'guest');
    const signIns = atFixedPace(phaseMs / newcomers, phaseMs, signIn);
    const during = await atFixedPace(requestEveryMs, phaseMs, sendAsKnownUser);
    await flood;
    const latency = 'latency of a user with cached credentials, 99th percentile';
    const whileGuessing = 'while 100 passwords a second are guessed';
    const [beforeMs, duringMs] = [quantile(before, 0.99), quantile(during, 0.99)];
    return [
      { title: `${latency}, before any guess`, figure: beforeMs, unit: 'ms' },
      {
        title: `${latency}, ${whileGuessing}`,
        figure: duringMs,
        unit: 'ms',
        peer: 'before any guess',
        ratio: duringMs / beforeMs,
        target: { ratioMax: 2 },
      },
      {
        title: `the slowest first login of a user, ${whileGuessing}`,
        figure: Math.max(...(await signIns)),
        unit: 'ms',
        target: { figureMax: 1000 },
      },
    ];
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

/** Infinite if the request is rejected because too many passwords are being checked. */
async function durationOf(options: RequestOptions): Promise<number> {
  const startMs = performance.now();
  const outcome = await outcomeOf(options);
  if (!/^\d+$/.test(outcome)) throw new Error(outcome);
  return outcome === '503' ? Number.POSITIVE_INFINITY : performance.now() - startMs;
}
