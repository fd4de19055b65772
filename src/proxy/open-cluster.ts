/** A cluster at work: who is asked next, how much may be under way, and what is known of each address. */
import type { Address } from './address.ts';
import { createAddresses } from './addresses.ts';
import { createBalance } from './balance.ts';
import { createBreakers } from './breakers.ts';
import type { Attempt, AttemptOutcome, Cluster, ClusterSnapshot, ClusterSpec } from './cluster.ts';
import type { HealthParts } from './health-check.ts';
import { createExchange, type Exchange, isOnReused, type Untraced } from './lane.ts';
import { isEjected, judge } from './outlier.ts';

export interface ClusterParts extends HealthParts {
  /** Milliseconds. */
  readonly clock: () => number;
  readonly untraced: Untraced | undefined;
}

export interface OpenCluster {
  readonly cluster: Cluster;
  /** Waits for the connections, which end with their exchanges; attempts that still come run. */
  readonly close: () => Promise<void>;
}

export function openCluster(spec: ClusterSpec, parts: ClusterParts): OpenCluster {
  const { service, outlierDetection } = spec;
  const { clock, logger, untraced } = parts;
  const addresses = createAddresses(spec, parts);
  const balance = createBalance<Address>(spec.loadBalancer);
  const breakers = createBreakers(service, spec.circuitBreakers);

  function choose(tried: readonly string[]): Address {
    const all = addresses.list();
    if (all.length === 1) return all[0] as Address;
    const nowMs = clock();
    return balance.pick(
      all,
      (address) => stateOf(address, nowMs) !== 'ejected' && address.health !== 'unhealthy',
      tried,
    );
  }

  function attempt(tried: readonly string[] = untried): Attempt {
    const address = choose(tried);
    breakers.enter(address);
    let exchange: Exchange | undefined;
    let isSettled = false;
    let isReleased = false;
    return {
      origin: address.origin,
      dispatch(options, handler, connection) {
        exchange = createExchange(options, handler, connection === 'fresh', untraced);
        address.connections.run(exchange);
      },
      isReused: () => exchange !== undefined && isOnReused(exchange),
      settle(outcome) {
        if (!isSettled) learn(address, outcome);
        isSettled = true;
      },
      release() {
        if (isReleased) return;
        isReleased = true;
        breakers.leave(address);
        if (exchange !== undefined) address.connections.end(exchange);
      },
    };
  }

  function learn(address: Address, outcome: AttemptOutcome): void {
    if (outcome.kind === 'abandoned' || (outcome.kind === 'failed' && isOurs(outcome.cause))) return;
    const { conduct, origin } = address;
    const hasFailed = outcome.kind === 'failed' || outcome.status >= 500;
    if (!hasFailed && conduct.failures === 0) return;
    const nowMs = clock();
    if (!judge(outlierDetection, conduct, addresses.conducts(), hasFailed, nowMs)) return;
    logger.warn({ service, origin, forMs: conduct.ejectedUntilMs - nowMs }, 'address ejected');
  }

  function snapshot(): ClusterSnapshot {
    const nowMs = clock();
    const all = addresses.list();
    return {
      service,
      isUsed: true,
      addresses: all.map((address) => ({
        origin: address.origin,
        health: stateOf(address, nowMs),
        activeRequests: address.activeRequests,
      })),
      circuit: all.every(breakers.refuses) ? 'open' : 'closed',
      ...breakers.counts,
    };
  }

  return Object.freeze({
    cluster: Object.freeze({ attempt, takeRetry: breakers.takeRetry, snapshot }),
    close: addresses.close,
  });
}

/** What undici refuses of a request. Counted, it would let a client have one address after the other ejected. */
const refusals = ['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED', 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH'];

function isOurs(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && refusals.includes(String(cause.code));
}

const untried: readonly string[] = [];

function stateOf({ conduct, health }: Address, nowMs: number): Address['health'] | 'ejected' {
  return isEjected(conduct, nowMs) ? 'ejected' : health;
}
