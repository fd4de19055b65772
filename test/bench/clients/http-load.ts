/**
 * Generates load from a separate process: 64 keep-alive connections, with one request at a time on each. Or one connection,
 * with cold caches.
 */
import { connect } from 'node:net';
import type { LoadOrder } from '../measurements/samples.ts';
import { orderBody } from './booking-orders.ts';

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

/**
 * The load continues until this order, and then ends after its open requests: a request that is cut off costs the server
 * more than a complete one. Its last message has the number of requests sent.
 */
export const stopOrder = 'stop';

/** Takes the place of the server's memory in the caches of a core that both share. */
const walked = new Uint8Array(8 * 1024 * 1024);
const cacheLineBytes = 64;

function walkMemory(): void {
  for (let at = 0; at < walked.length; at += cacheLineBytes) walked[at] = (walked[at] ?? 0) + 1;
}

/** A minimal HTTP client that takes little CPU from the measured server. Returns a function that stops it. */
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
    onClose() {
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

interface Exchange {
  /** Returns the next request, or undefined to close the connection. */
  readonly next: () => Buffer | undefined;
  /** The expected status line. Any other ends the benchmark. */
  readonly statusLine: RegExp;
  readonly onResponse: () => void;
  readonly onClose: () => void;
}

function openConnection(port: number, { next, statusLine, onResponse, onClose }: Exchange): void {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true }, send);
  let head = '';
  let missingBytes = 0;
  socket.on('data', (chunk) => {
    if (missingBytes === 0) {
      head += chunk.toString('latin1');
      const length = responseLength(head, statusLine);
      if (length === undefined) return;
      missingBytes = length - head.length;
      head = '';
    } else {
      missingBytes -= chunk.length;
    }
    if (missingBytes > 0) return;
    onResponse();
    send();
  });
  socket.on('error', (error) => {
    throw error;
  });

  function send(): void {
    const request = next();
    if (request !== undefined) {
      socket.write(request);
      return;
    }
    socket.destroy();
    onClose();
  }
}

/** The length of the whole response, or undefined until its head has arrived. */
function responseLength(text: string, statusLine: RegExp): number | undefined {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd === -1) return undefined;
  const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1];
  if (!statusLine.test(text) || length === undefined) throw new Error(`unexpected response:\n${text}`);
  return headEnd + 4 + Number(length);
}

let stop: (() => void) | undefined;

process.on('message', (order) => {
  if (order === stopOrder) stop?.();
  else if (typeof order === 'object') stop = run(order as HttpLoadOrder);
});
