/** A bounded connection pool for one address. Reuses the last used connection, and queues requests if all are busy. */
import {
  type Connection,
  type ConnectionListener,
  type ConnectionOptions,
  type ConnectionParts,
  type Connector,
  createConnector,
  openConnection,
  type PooledRequest,
  send,
} from './connection.ts';

export interface Pool {
  readonly run: (request: PooledRequest) => void;
  /** Removes the request from the queue, if it is still there. */
  readonly cancel: (request: PooledRequest) => void;
  /** Closes each connection as soon as it is idle. Later requests still run, each on a new connection. */
  readonly close: () => Promise<void>;
  /** Aborts all requests, including queued ones. Later requests fail. */
  readonly destroy: () => void;
}

export function createPool(options: ConnectionOptions, connectionsMax: number, parts: ConnectionParts): Pool {
  const queue = new Set<PooledRequest>();
  const connections = createConnections(options, connectionsMax, parts, onFree);

  function start(connection: Connection, request: PooledRequest): void {
    send(connection, request, () => onFree(connection));
  }

  /** Also called after an upgrade, which detaches the socket from the connection. The connection can open another. */
  function onFree(connection: Connection): void {
    if (connection.request === undefined) return;
    connection.request = undefined;
    if (queue.size > 0) startNext(connection);
    else connections.release(connection);
  }

  function startNext(connection: Connection): void {
    const [request] = queue;
    if (request === undefined) return;
    queue.delete(request);
    if (connections.isUsedUp(connection) || (request.isFresh && connection.isConnected)) {
      connections.drop(connection);
      run(request);
    } else start(connection, request);
  }

  function run(request: PooledRequest): void {
    const connection = connections.acquire(request.isFresh);
    if (connection === undefined) queue.add(request);
    else start(connection, request);
  }

  return Object.freeze({
    run,
    cancel: (request: PooledRequest) => void queue.delete(request),
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
 * Tracks the open and the idle connections. We do not use undici's own Pool because it searches all its clients for
 * each request, keeps them forever, and loses a client when it rejects a request.
 */
function createConnections(
  options: ConnectionOptions,
  connectionsMax: number,
  parts: ConnectionParts,
  onFree: ConnectionListener['onFree'],
) {
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
    const connection = openConnection(options, connector, listener, parts);
    all.add(connection);
    // A destroyed client rejects the request, which then fails like any other.
    if (isDestroyed) dropNow(connection);
    return connection;
  }

  function isUsedUp({ isBroken, expiresAtMs }: Connection): boolean {
    return isBroken || parts.clock() >= expiresAtMs;
  }

  /** Returns the last used idle connection, closing those whose lifetime is over. */
  function reuse(): Connection | undefined {
    for (let connection = idle.pop(); connection !== undefined; connection = idle.pop()) {
      if (!isUsedUp(connection)) return connection;
      drop(connection);
    }
    return undefined;
  }

  /** Opens a new connection, closing an idle one if the pool is full. */
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

  function dropNow(connection: Connection): void {
    connection.isBroken = true;
    drop(connection);
  }

  function isEmpty(): boolean {
    return all.size + closing === 0;
  }

  return {
    /** Returns the last used idle connection or a new one. Undefined if all connections are busy. */
    acquire: (isFresh: boolean) => (isFresh ? openFresh() : (reuse() ?? open())),
    /** Keeps the connection for later requests, or closes it if it has no socket. */
    release(connection: Connection) {
      if (connection.isConnected && closed === undefined) idle.push(connection);
      else drop(connection);
    },
    isUsedUp,
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
      for (const connection of all) dropNow(connection);
    },
  };
}
