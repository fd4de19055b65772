/** The load, a separate process: as many requests as 64 keep-alive connections carry, one at a time on each. */
import { connect, type Socket } from 'node:net';
import { orderBody } from './booking-orders.ts';

export interface LoadOrder {
  readonly port: number;
  /** The whole request as text; of orders the head alone. */
  readonly request: string;
  /** Sends orders, counted from this one on. @default the same request each time */
  readonly ordersFrom?: number;
  /** @default 200, or the 201 of an order */
  readonly status?: number;
  /** Runs for so long before it sends `began`, and then for so long until `ended`. */
  readonly warmUpMs: number;
  readonly durationMs: number;
}

export type LoadReport =
  | { readonly event: 'began' }
  | { readonly event: 'ended'; readonly requests: number; readonly sent: number };

const connections = 64;

/** Less than an HTTP client: it costs the machine little beside the server that is measured. */
function run({ port, request, ordersFrom, status, warmUpMs, durationMs }: LoadOrder): void {
  let [sent, answered] = [0, 0];
  const bytes = Buffer.from(request, 'latin1');
  const next = () => {
    sent += 1;
    return ordersFrom === undefined ? bytes : Buffer.from(request + orderBody(ordersFrom + sent), 'latin1');
  };
  const exchange: Exchange = {
    next,
    statusLine: status === undefined ? /^HTTP\/1\.1 20[01] / : new RegExp(`^HTTP/1\\.1 ${status} `),
    onAnswer: () => (answered += 1),
  };
  const sockets = Array.from({ length: connections }, () => openConnection(port, exchange));
  const rest = stayAwake();
  setTimeout(() => {
    answered = 0;
    report({ event: 'began' });
    setTimeout(() => {
      report({ event: 'ended', requests: answered, sent });
      rest();
      for (const socket of sockets) socket.destroy();
    }, durationMs);
  }, warmUpMs);
}

/** A server slower than its load would pay for waking it at every answer, and a faster one would not; wants a core. */
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

function report(report: LoadReport): void {
  process.send?.(report);
}

interface Exchange {
  readonly next: () => Buffer;
  /** Of the answer that is measured; any other ends the benchmark. */
  readonly statusLine: RegExp;
  readonly onAnswer: () => void;
}

function openConnection(port: number, { next, statusLine, onAnswer }: Exchange): Socket {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true }, () => socket.write(next()));
  let head = '';
  let missing = 0;
  socket.on('data', (chunk) => {
    if (missing === 0) {
      head += chunk.toString('latin1');
      const length = answerLength(head, statusLine);
      if (length === undefined) return;
      missing = length - head.length;
      head = '';
    } else {
      missing -= chunk.length;
    }
    if (missing > 0) return;
    onAnswer();
    socket.write(next());
  });
  socket.on('error', (error) => {
    throw error;
  });
  return socket;
}

/** Of the whole answer, once its head is there. */
function answerLength(text: string, statusLine: RegExp): number | undefined {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd === -1) return undefined;
  const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1];
  if (!statusLine.test(text) || length === undefined) throw new Error(`unexpected answer:\n${text}`);
  return headEnd + 4 + Number(length);
}

process.on('message', (order) => {
  if (typeof order === 'object') run(order as LoadOrder);
});
