/**
 * Generates load from a separate process: 64 keep-alive connections, with one request at a time on each. Or one connection,
 * with cold caches.
 */
import { type LoadOrder, stopOrder } from '../measurements/samples.ts';
import { orderBody } from './booking-orders.ts';
import { type Exchange, openConnection } from './http-connection.ts';

export interface HttpLoadOrder extends LoadOrder {
  /** The whole request as text; for orders, only the head. */
  readonly request: string;
  /** The number of the first order to send. @default sends the same request each time */
  readonly ordersFrom?: number;
  /** @default 200, or 201 for an order */
  readonly status?: number;
  /** Run this process on the server's core. @default false */
  readonly coldCaches?: boolean;
}

/** Takes the place of the server's memory in the caches of a core that both share. */
const walked = new Uint8Array(8 * 1024 * 1024);
const cacheLineBytes = 64;

function walkMemory(): void {
  for (let at = 0; at < walked.length; at += cacheLineBytes) walked[at] = (walked[at] ?? 0) + 1;
}

/** Returns a function that stops the load. */
function run(order: HttpLoadOrder): () => void {
  const { port, request, ordersFrom, status, warmUpMs, durationMs, coldCaches = false } = order;
  const connections = coldCaches ? 1 : 64;
  let [sent, responses, open] = [0, 0, connections];
  let isStopped = false;
  const bytes = Buffer.from(request, 'latin1');
  const next = () => {
    if (isStopped) return undefined;
    if (coldCaches) walkMemory();
    sent += 1;
    return ordersFrom === undefined ? bytes : Buffer.from(request + orderBody(ordersFrom + sent), 'latin1');
  };
  const exchange: Exchange = {
    next,
    statusLine: status === undefined ? /^HTTP\/1\.1 20[01] / : new RegExp(`^HTTP/1\\.1 ${status} `),
    onResponse: () => (responses += 1),
    onFailure(error) {
      throw error;
    },
    onClose() {
      if (!isStopped) throw new Error('the server closed a connection');
      open -= 1;
      if (open > 0) return;
      stopStayingAwake();
      process.send?.({ sent });
    },
  };
  const stopStayingAwake = coldCaches ? () => {} : stayAwake();
  for (let count = 0; count < connections; count += 1) openConnection(port, exchange);
  setTimeout(() => {
    responses = 0;
    process.send?.('began');
    setTimeout(() => process.send?.({ requests: responses }), durationMs);
  }, warmUpMs);
  return () => {
    isStopped = true;
  };
}

/** Keeps this process on a core, because otherwise a slow server would pay for waking it at every response. */
function stayAwake(): () => void {
  let awake = true;
  const turn = () => {
    if (awake) setImmediate(turn);
  };
  turn();
  return () => {
    awake = false;
  };
}

let stop: (() => void) | undefined;

process.on('message', (order) => {
  if (order === stopOrder) stop?.();
  else if (typeof order === 'object') stop = run(order as HttpLoadOrder);
});
