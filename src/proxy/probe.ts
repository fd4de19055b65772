/** One question to one address: the status of a GET, over a connection of its own. */
import type { HealthCheck } from '#config';
import type { ClusterSpec } from './cluster.ts';
import { createConnector } from './connector.ts';
import type { Timer } from './timer.ts';
import { loadUndici } from './undici.ts';

/** Tells the status once, undefined when there was none in time; what it gives breaks off and tells nothing. */
export type Probe = (tell: (status: number | undefined) => void) => () => void;

/** Never over the connections of the traffic: where all of them are taken, the check would wait in line and fail. */
export function createProbe(origin: string, spec: ClusterSpec, check: HealthCheck, timer: Timer): Probe {
  const { serverName } = spec;
  const { connect, verified } = createConnector({ origin, serverName, connectTimeoutMs: check.timeoutMs });
  const { hostname, path, timeoutMs } = check;
  const headers = hostname === undefined ? {} : { host: hostname };
  const named = verified === undefined ? {} : { servername: verified };
  return (tell) => {
    const client = new (loadUndici().Client)(origin, { connect, pipelining: 0, headersTimeout: 0, bodyTimeout: 0 });
    let isOver = false;
    const end = (): boolean => {
      const isFirst = !isOver;
      isOver = true;
      cancel();
      void client.destroy();
      return isFirst;
    };
    const cancel = timer(() => end() && tell(undefined), timeoutMs);
    client.dispatch(
      { method: 'GET', path, headers, ...named },
      {
        onRequestStart() {},
        onResponseStart(_controller, status) {
          if (status >= 200 && end()) tell(status);
        },
        onResponseData() {},
        onResponseEnd() {},
        onResponseError() {
          if (end()) tell(undefined);
        },
      },
    );
    return () => void end();
  };
}
