/** The lanes to one address: how many there may be, and which of them rest. */
import { type Connector, type ConnectorOptions, createConnector } from './connector.ts';
import { type Lane, openLane } from './lane.ts';

export interface LanesOptions extends ConnectorOptions {
  readonly connectionsMax: number;
  /** Told when a lane's exchange is over, or has taken its connection away. */
  readonly onFree: (lane: Lane) => void;
}

export interface Lanes {
  /** The one that rested last, or a new one; `isFresh`: a new one, if need be in place of one that rests. Undefined: all are taken. */
  readonly take: (isFresh: boolean) => Lane | undefined;
  /** Rests until it is taken again, if it has a connection, or ends. */
  readonly putBack: (lane: Lane) => void;
  readonly drop: (lane: Lane) => void;
  /** A connection more, or less, that counts although it has no lane any more. */
  readonly countSwitched: (more: 1 | -1) => void;
  /** False when connections that were switched took the room of lanes that are there. */
  readonly areWithinBounds: () => boolean;
  /** None rests from now on. Waits until there are none. */
  readonly close: () => Promise<void>;
}

/**
 * undici's own Pool looks through all its clients for each request, keeps them for ever, and loses one to a request that
 * it refuses; so the pool is ours, of undici's clients.
 */
export function createLanes(options: LanesOptions): Lanes {
  const idle: Lane[] = [];
  const lanes = new Set<Lane>();
  let connector: Connector | undefined;
  let closing = 0;
  let switched = 0;
  let closed: Promise<void> | undefined;
  let whenEmpty = () => {};

  function open(): Lane | undefined {
    if (lanes.size + switched >= options.connectionsMax) return undefined;
    connector ??= createConnector(options);
    const lane = openLane(options.origin, connector, options.onFree, lost);
    lanes.add(lane);
    return lane;
  }

  function openAnew(): Lane | undefined {
    const lane = open();
    const oldest = lane === undefined ? idle.shift() : undefined;
    if (oldest === undefined) return lane;
    drop(oldest);
    return open();
  }

  function lost(lane: Lane): void {
    const place = lane.exchange === undefined ? idle.indexOf(lane) : -1;
    if (place === -1) return;
    idle.splice(place, 1);
    drop(lane);
  }

  function drop(lane: Lane): void {
    lanes.delete(lane);
    closing += 1;
    const gone = lane.isBroken ? lane.client.destroy() : lane.client.close();
    void gone.then(() => {
      closing -= 1;
      if (isEmpty()) whenEmpty();
    });
  }

  function isEmpty(): boolean {
    return lanes.size + closing === 0;
  }

  return Object.freeze({
    take: (isFresh: boolean) => (isFresh ? openAnew() : (idle.pop() ?? open())),
    putBack(lane: Lane) {
      if (lane.connected && closed === undefined) idle.push(lane);
      else drop(lane);
    },
    drop,
    countSwitched(more: 1 | -1) {
      switched += more;
    },
    areWithinBounds: () => lanes.size + switched <= options.connectionsMax,
    close() {
      closed ??= new Promise<void>((resolve) => {
        whenEmpty = resolve;
        for (const lane of idle.splice(0)) drop(lane);
        if (isEmpty()) resolve();
      });
      return closed;
    },
  });
}
