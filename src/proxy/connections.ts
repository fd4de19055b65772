/** The connections to one address: a bounded number, the last used first, and who finds none waits in line. */
import type { ConnectorOptions } from './connector.ts';
import { type Exchange, type Lane, runOn } from './lane.ts';
import { createLanes } from './lanes.ts';

export interface ConnectionsOptions extends ConnectorOptions {
  readonly connectionsMax: number;
}

export interface Connections {
  readonly run: (exchange: Exchange) => void;
  /** Leaves the line, or gives up a connection that has switched protocols. */
  readonly end: (exchange: Exchange) => void;
  /** Ends idle connections at once and the others with their exchanges; later exchanges still run, each on its own. */
  readonly close: () => Promise<void>;
}

export function createConnections(options: ConnectionsOptions): Connections {
  const line = new Set<Exchange>();
  const lanes = createLanes({ ...options, onFree: free });

  function start(lane: Lane, exchange: Exchange): void {
    runOn(lane, exchange, () => free(lane));
  }

  /** The connection of an upgrade is lost to its lane, and counts until the exchange ends. */
  function free(lane: Lane): void {
    const { exchange } = lane;
    if (exchange === undefined) return;
    lane.exchange = undefined;
    if (exchange.state === 'running' && exchange.options.upgrade) {
      exchange.state = 'switched';
      lanes.countSwitched(1);
    }
    if (line.size > 0 && lanes.areWithinBounds()) startNext(lane);
    else lanes.putBack(lane);
  }

  function startNext(lane: Lane): void {
    const [exchange] = line;
    if (exchange === undefined) return;
    line.delete(exchange);
    if (lane.isBroken || (exchange.isFresh && lane.connected)) {
      lanes.drop(lane);
      run(exchange);
    } else start(lane, exchange);
  }

  function run(exchange: Exchange): void {
    const lane = lanes.take(exchange.isFresh);
    if (lane === undefined) line.add(exchange);
    else start(lane, exchange);
  }

  return Object.freeze({
    run,
    end(exchange: Exchange) {
      line.delete(exchange);
      const wasSwitched = exchange.state === 'switched';
      exchange.state = 'over';
      if (!wasSwitched) return;
      lanes.countSwitched(-1);
      const lane = line.size > 0 ? lanes.take(false) : undefined;
      if (lane !== undefined) startNext(lane);
    },
    close: lanes.close,
  });
}
