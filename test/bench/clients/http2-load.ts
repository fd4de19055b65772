/** Generates load from a separate process: 64 concurrent requests, over HTTP/2 or over HTTP/1.1 and TLS. */
import { connect } from 'node:http2';
import { Agent, get } from 'node:https';
import { type LoadOrder, stopOrder } from '../measurements/samples.ts';

export interface Http2LoadOrder extends LoadOrder {
  readonly protocol: 'http/1.1' | 'h2' | 'h2c';
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The body of a POST, in Base64. @default sends a GET */
  readonly message?: string;
}

const concurrency = 64;
/** A browser has one connection for each server, and a gateway several clients. */
const sessions = 4;

interface Client {
  /** Resolves when the response with status 200 is complete. */
  readonly send: () => Promise<void>;
  readonly close: () => void;
}

function run(order: Http2LoadOrder): () => void {
  const client = order.protocol === 'http/1.1' ? overHttp1(order) : overHttp2(order);
  let responses = 0;
  let isStopped = false;
  const sendAll = async () => {
    while (!isStopped) {
      await client.send();
      responses += 1;
    }
  };
  void Promise.all(Array.from({ length: concurrency }, sendAll)).then(() => {
    client.close();
    process.send?.('stopped');
  });
  setTimeout(() => {
    responses = 0;
    process.send?.('began');
    setTimeout(() => process.send?.({ requests: responses }), order.durationMs);
  }, order.warmUpMs);
  return () => {
    isStopped = true;
  };
}

function overHttp1({ port, path, headers }: Http2LoadOrder): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: concurrency, rejectUnauthorized: false });
  const send = () =>
    new Promise<void>((resolve, reject) => {
      get({ host: '127.0.0.1', port, path, headers, agent }, (response) => {
        if (response.statusCode !== 200) reject(new Error(`unexpected status ${response.statusCode}`));
        response.resume().once('end', resolve);
      }).on('error', reject);
    });
  return { send, close: () => agent.destroy() };
}

function overHttp2({ port, path, headers, protocol, message }: Http2LoadOrder): Client {
  const url = `${protocol === 'h2' ? 'https' : 'http'}://127.0.0.1:${port}`;
  const open = Array.from({ length: sessions }, () => connect(url, { rejectUnauthorized: false }));
  const body = message === undefined ? undefined : Buffer.from(message, 'base64');
  const head = { ':method': body === undefined ? 'GET' : 'POST', ':path': path, ...headers };
  let next = 0;
  const send = () =>
    new Promise<void>((resolve, reject) => {
      next += 1;
      const stream = open[next % sessions]?.request(head);
      stream?.on('response', ({ ':status': status }) => {
        if (status !== 200) reject(new Error(`unexpected status ${status}`));
      });
      stream?.on('trailers', ({ 'grpc-status': status }) => {
        if (status !== '0') reject(new Error(`unexpected gRPC status ${status}`));
      });
      stream?.on('error', reject).on('end', resolve).resume().end(body);
    });
  return { send, close: () => void open.map((session) => session.destroy()) };
}

let stop: (() => void) | undefined;

process.on('message', (order) => {
  if (order === stopOrder) stop?.();
  else if (typeof order === 'object') stop = run(order as Http2LoadOrder);
});
