/** Asks one address for its health at an interval, whether it has traffic or not. */
import type { HealthCheck } from '#config';
import { type ConnectionOptions, createConnector, loadUndici, withServerName } from './connection.ts';

/** Runs `run` once after `delayMs`, unless the function that it returns is called before. */
export type Timer = (run: () => void, delayMs: number) => () => void;

export type Health = 'unknown' | 'healthy' | 'unhealthy';

export interface HealthCheckParts {
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly timer: Timer;
  /** When the health changes; `status` is undefined when there was no response in time. */
  readonly onChange: (health: Health, status: number | undefined) => void;
  /** After each check that an address passes while it is healthy. */
  readonly onPass: () => void;
}

/** Runs until the function that it returns is called. The first check comes at a random time within one interval: all addresses at once would be a burst. */
export function watchHealth(
  address: Pick<ConnectionOptions, 'origin' | 'serverName'>,
  check: HealthCheck,
  { random, timer, onChange, onPass }: HealthCheckParts,
): () => void {
  const probe = createProbe(address, check, timer);
  let health: Health = 'unknown';
  let streak = 0;
  let cancelProbe = () => {};
  let cancelTimer = timer(ask, random() * check.intervalMs);

  function ask(): void {
    cancelProbe = probe(onResult);
  }

  function onResult(status: number | undefined): void {
    cancelTimer = timer(ask, check.intervalMs);
    const next = healthAfter(status);
    if (next !== health) {
      health = next;
      onChange(health, status);
    }
    if (health === 'healthy' && isExpected(check, status)) onPass();
  }

  function healthAfter(status: number | undefined): Health {
    const found = isExpected(check, status) ? 'healthy' : 'unhealthy';
    streak = health === found ? 0 : streak + 1;
    if (streak < neededFor(check, health, status)) return health;
    streak = 0;
    return found;
  }

  return () => {
    cancelTimer();
    cancelProbe();
  };
}

/** How many results in a row change the health. The first good one is enough, and so is a 503, as for Envoy. */
function neededFor(check: HealthCheck, health: Health, status: number | undefined): number {
  if (!isExpected(check, status)) return status === 503 ? 1 : check.unhealthyThreshold;
  return health === 'unknown' ? 1 : check.healthyThreshold;
}

function isExpected({ expectedStatuses }: HealthCheck, status: number | undefined): boolean {
  return status !== undefined && expectedStatuses.some(({ min, max }) => min <= status && status <= max);
}

/** Calls `done` once with the status, or with undefined when there was none in time; the function that it returns cancels it. */
type Probe = (done: (status: number | undefined) => void) => () => void;

/** Never over the connections of the traffic: where all of them are busy, the check would wait and fail. */
function createProbe(
  address: Pick<ConnectionOptions, 'origin' | 'serverName'>,
  check: HealthCheck,
  timer: Timer,
): Probe {
  const { hostname, path, timeoutMs } = check;
  const { connect, serverName } = createConnector({ ...address, connectTimeoutMs: timeoutMs });
  const headers = hostname === undefined ? {} : { host: hostname };
  const options = withServerName({ method: 'GET', path, headers }, serverName);
  return (done) => {
    const client = new (loadUndici().Client)(address.origin, {
      connect,
      pipelining: 0,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    let isOver = false;
    const end = () => {
      isOver = true;
      cancel();
      void client.destroy();
    };
    const finish = (status: number | undefined) => {
      if (isOver) return;
      end();
      done(status);
    };
    const cancel = timer(() => finish(undefined), timeoutMs);
    client.dispatch(options, {
      onRequestStart() {},
      onResponseStart(_controller, status) {
        if (status >= 200) finish(status);
      },
      onResponseData() {},
      onResponseEnd() {},
      onResponseError: () => finish(undefined),
    });
    return end;
  };
}
