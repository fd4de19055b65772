/** Throttles logins after repeated failures, counted by network and by pair of network and user name. */
import { hash, randomBytes } from 'node:crypto';
import { createBoundedMap } from '#foundation';
import type { Sender } from '#http';
import type { Random } from './users.ts';

/** The login attempts of one user from one network. */
export interface Login {
  /** Returns the milliseconds until a password may be tried, or 0 if it may be tried now. */
  readonly waitMs: () => number;
  /** Returns the number of failures of the network or of the pair, whichever is higher. */
  readonly failures: () => number;
  readonly failed: () => void;
  /** Resets the failures of the pair. Those of the network stay, because a guesser may also have a valid password. */
  readonly succeeded: () => void;
}

/** How the login of one user from one network ended. */
export interface LoginOutcome {
  readonly sender: Sender;
  readonly user: string;
  readonly hasFailed: boolean;
}

export interface Throttle {
  /** Never throttles by name alone, because anyone could then lock out a user. */
  readonly loginOf: (sender: Sender, user: string) => Login;
  /** Counts a login that has ended in another thread. */
  readonly learn: (outcome: LoginOutcome) => void;
}

export interface ThrottleOptions {
  /** A monotonic clock, in milliseconds. @default performance.now */
  readonly clock?: () => number;
  readonly random?: Random;
  /** Receives the outcome of each login, for the throttles of other threads. */
  readonly onOutcome?: ((outcome: LoginOutcome) => void) | undefined;
}

/** Maximum number of networks to remember, and also of pairs. */
const entriesMax = 10_000;

/** Failures before throttling begins. A network has more of them, because it may be a whole office. */
const networkFailuresFree = 30;
const pairFailuresFree = 10;

export function createThrottle({
  clock = () => performance.now(),
  random = randomBytes,
  onOutcome = () => {},
}: ThrottleOptions = {}): Throttle {
  const networks = createFailures(clock, networkFailuresFree);
  const pairs = createFailures(clock, pairFailuresFree);
  const secret = Buffer.from(random(32)).toString('base64');

  /** Returns a digest, because a name may have 3,000 characters, or be a password typed into the wrong field. */
  function pairOf(network: string, user: string): string {
    return hash('sha256', `${secret}${network} ${user}`, 'base64');
  }

  function add(pair: string, { network, isShared }: Sender): void {
    pairs.add(pair);
    if (!isShared) networks.add(network);
  }

  return Object.freeze({
    loginOf(sender: Sender, user: string) {
      const { network, isShared } = sender;
      const pair = pairOf(network, user);
      return {
        waitMs: () => Math.max(pairs.waitMs(pair), isShared ? 0 : networks.waitMs(network)),
        failures: () => Math.max(pairs.level(pair), isShared ? 0 : networks.level(network)),
        failed() {
          add(pair, sender);
          onOutcome({ sender, user, hasFailed: true });
        },
        succeeded() {
          pairs.forget(pair);
          onOutcome({ sender, user, hasFailed: false });
        },
      };
    },
    learn({ sender, user, hasFailed }: LoginOutcome) {
      const pair = pairOf(sender.network, user);
      if (hasFailed) add(pair, sender);
      else pairs.forget(pair);
    },
  });
}

/** The time after which a failure is forgotten. A guesser who obeys the waits gets about one guess a minute. */
const forgetEveryMs = 60_000;
const firstWaitMs = 1000;
const waitMsMax = 300_000;

interface Failures {
  readonly count: number;
  /** The time of the last failure. */
  readonly lastMs: number;
}

/**
 * Counts failures by key. When there are too many entries, the one whose last failure is the oldest is evicted. To
 * evict an entry deliberately, an attacker would need as many failures as there are entries. A network is throttled
 * long before that, unless it is shared.
 */
function createFailures(clock: () => number, free: number) {
  const entries = createBoundedMap<string, Failures>(entriesMax);

  function level(key: string): number {
    const { count, lastMs } = entries.get(key) ?? { count: 0, lastMs: 0 };
    return Math.max(0, count - (clock() - lastMs) / forgetEveryMs);
  }

  return Object.freeze({
    level,
    waitMs(key: string): number {
      const { count, lastMs } = entries.get(key) ?? { count: 0, lastMs: 0 };
      if (count <= free) return 0;
      const waitMs = Math.min(waitMsMax, firstWaitMs * 2 ** (Math.ceil(count - free) - 1));
      return Math.max(0, lastMs + waitMs - clock());
    },
    add(key: string): void {
      const count = level(key) + 1;
      entries.set(key, { count, lastMs: clock() });
    },
    forget: entries.delete,
  });
}
