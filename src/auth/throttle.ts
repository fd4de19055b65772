/** Failed logins, counted by network and by the pair of network and name: beyond a few, each one doubles the wait. */
import { hash, randomBytes } from 'node:crypto';
import type { Sender } from '#http';
import type { Random } from './password-hash.ts';

/** One user's attempts from one network. */
export interface Login {
  /** Milliseconds until a password may be tried; 0: now. */
  readonly waitMs: () => number;
  /** How many failures count against it: of the network or of the pair, whichever has more. */
  readonly failures: () => number;
  readonly failed: () => void;
  /** Forgets the failures of the pair. Those of the network stay: a guesser may have a password too. */
  readonly succeeded: () => void;
}

export interface Throttle {
  /** A name alone is never throttled: its user could be locked out from anywhere. */
  readonly loginOf: (sender: Sender, user: string) => Login;
}

export interface ThrottleOptions {
  /** Milliseconds from any fixed point. @default performance.now */
  readonly clock?: () => number;
  readonly random?: Random;
  /** How many networks are remembered, and how many pairs. @default 10_000 */
  readonly entriesMax?: number;
}

/** Behind one address may be an office. */
const networkFailuresFree = 30;
const pairFailuresFree = 10;

export function createThrottle({
  clock = () => performance.now(),
  random = randomBytes,
  entriesMax = 10_000,
}: ThrottleOptions = {}): Throttle {
  const networks = createFailures({ clock, entriesMax, free: networkFailuresFree });
  const pairs = createFailures({ clock, entriesMax, free: pairFailuresFree });
  const secret = Buffer.from(random(32)).toString('base64');
  return Object.freeze({
    loginOf({ network, isShared }: Sender, user: string) {
      // A digest: a name may have 3,000 characters, and a password that was typed in its place must not be kept.
      const pair = hash('sha256', `${secret}${network} ${user}`, 'base64');
      return {
        waitMs: () => Math.max(pairs.waitMs(pair), isShared ? 0 : networks.waitMs(network)),
        failures: () => Math.max(pairs.level(pair), isShared ? 0 : networks.level(network)),
        failed() {
          pairs.add(pair);
          if (!isShared) networks.add(network);
        },
        succeeded: () => pairs.forget(pair),
      };
    },
  });
}

/** One failure is forgotten in that time, so who waits as long as he must guesses about once a minute. */
const forgetEveryMs = 60_000;
const firstWaitMs = 1000;
const waitMsMax = 300_000;

interface Failures {
  readonly count: number;
  /** Of the last one. */
  readonly atMs: number;
}

/**
 * When there are too many entries, the one that failed longest ago goes. An attacker who wants it to be his own needs as
 * many failures as there are entries, and their checks take longer than the longest wait.
 */
function createFailures({
  clock,
  free,
  entriesMax,
}: Required<Pick<ThrottleOptions, 'clock' | 'entriesMax'>> & { free: number }) {
  const entries = new Map<string, Failures>();

  function level(key: string): number {
    const { count, atMs } = entries.get(key) ?? { count: 0, atMs: 0 };
    return Math.max(0, count - (clock() - atMs) / forgetEveryMs);
  }

  return Object.freeze({
    level,
    waitMs(key: string): number {
      const { count, atMs } = entries.get(key) ?? { count: 0, atMs: 0 };
      if (count <= free) return 0;
      const waitMs = Math.min(waitMsMax, firstWaitMs * 2 ** (Math.ceil(count - free) - 1));
      return Math.max(0, atMs + waitMs - clock());
    },
    add(key: string): void {
      const count = level(key) + 1;
      entries.delete(key);
      entries.set(key, { count, atMs: clock() });
      if (entries.size > entriesMax) entries.delete(entries.keys().next().value ?? key);
    },
    forget: (key: string) => void entries.delete(key),
  });
}
