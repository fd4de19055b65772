/** The connections to one address: a bounded number, the last used first, and a queue when all of them are busy. */
import {
  type Connection,
  type ConnectionListener,
  type ConnectionOptions,
  type Connector,
  createConnector,
  openConnection,
  type PooledRequest,
  send,
} from './connection.ts';

export interface Pool {
  readonly run: (request: PooledRequest) => void;
  /** Takes the request out of the queue, if it is still in it. */
  readonly forget: (request: PooledRequest) => void;
  /** Ends idle connections at once and the others after their requests; later requests still run, each on a new connection. */
  readonly close: () => Promise<void>;
  /** Breaks off all requests, also those in the queue; later ones fail. */
  readonly destroy: () => void;
}

export function createPool(options: ConnectionOptions, connectionsMax: number): Pool {
  const queue = new Set<PooledRequest>();
  const connections = createConnections(options, connectionsMax, onFree);

  function start(connection: Connection, request: PooledRequest): void {
    send(connection, request, () => onFree(connection));
  }

  /** Also after an upgrade, with which the connection has lost its socket and may open another. */
  function onFree(connection: Connection): void {
    if (connection.request === undefined) return;
    connection.request = undefined;
    if (queue.size > 0) startNext(connection);
    else connections.putBack(connection);
  }

  function startNext(connection: Connection): void {
    const [request] = queue;
    if (request === undefined) return;
    queue.delete(request);
    if (connection.isBroken || (request.isFresh && connection.isConnected)) {
      connections.drop(connection);
      run(request);
    } else start(connection, request);
  }

  function run(request: PooledRequest): void {
    const connection = connections.take(request.isFresh);
    if (connection === undefined) queue.add(request);
    else start(connection, request);
  }

  return Object.freeze({
    run,
    forget: (request: PooledRequest) => void queue.delete(request),
    close: connections.close,
    destroy() {
      connections.destroy();
      const waiting = [...queue];
      queue.clear();
      for (const request of waiting) run(request);
    },
  });
}

/**
 * How many connections there are, and which are idle. undici's own Pool looks through all its clients for each request,
 * keeps them forever, and loses one to a request that it refuses; so the pool is ours, of undici's clients.
 */
function createConnections(options: ConnectionOptions, connectionsMax: number, onFree: ConnectionListener['onFree']) {
  const idle: Connection[] = [];
  const all = new Set<Connection>();
  const listener: ConnectionListener = { onFree, onClosed };
  let connector: Connector | undefined;
  let closing = 0;
  let closed: Promise<void> | undefined;
  let isDestroyed = false;
  let whenEmpty = () => {};

  function open(): Connection | undefined {
    if (all.size >= connectionsMax) return undefined;
    connector ??= createConnector(options);
    const connection = openConnection(options, connector, listener);
    // Its client then refuses the request, which ends as any other that fails.
    if (isDestroyed) breakOff(connection);
    all.add(connection);
    return connection;
  }

  /** If need be in place of one that is idle. */
  function openFresh(): Connection | undefined {
    const connection = open();
    const oldest = connection === undefined ? idle.shift() : undefined;
    if (oldest === undefined) return connection;
    drop(oldest);
    return open();
  }

  function onClosed(connection: Connection): void {
    const index = connection.request === undefined ? idle.indexOf(connection) : -1;
    if (index === -1) return;
    idle.splice(index, 1);
    drop(connection);
  }

  function drop(connection: Connection): void {
    const { client, isBroken } = connection;
    all.delete(connection);
    closing += 1;
    void (isBroken ? client.destroy() : client.close()).then(() => {
      closing -= 1;
      if (isEmpty()) whenEmpty();
    });
  }

  function breakOff(connection: Connection): void {
    connection.isBroken = true;
    void connection.client.destroy();
  }

  function isEmpty(): boolean {
    return all.size + closing === 0;
  }

  return {
    /** The one that was used last, or a new one. Undefined: all are busy. */
    take: (isFresh: boolean) => (isFresh ? openFresh() : (idle.pop() ?? open())),
    /** Stays idle until it is taken again, or ends when it has no socket. */
    putBack(connection: Connection) {
      if (connection.isConnected && closed === undefined) idle.push(connection);
      else drop(connection);
    },
    drop,
    close() {
      closed ??= new Promise<void>((resolve) => {
        whenEmpty = resolve;
        for (const connection of idle.splice(0)) drop(connection);
        if (isEmpty()) resolve();
      });
      return closed;
    },
    destroy() {
      isDestroyed = true;
      for (const connection of all) {
        breakOff(connection);
        drop(connection);
      }
    },
  };
}
