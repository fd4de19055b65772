/** A client of HTTP/2 that sends headers as they are given and shows every part of what it receives. */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type OutgoingHttpHeaders,
  type SecureClientSessionOptions,
} from 'node:http2';
import { closeOf } from '../waiting.ts';

export interface Http2Client {
  readonly session: ClientHttp2Session;
  /**
   * Sends a request and its body, if there is one. The headers are added to a GET of `/` at the authority of the URL.
   * Resolves when the stream has closed.
   */
  readonly send: (headers?: OutgoingHttpHeaders, body?: string | Uint8Array) => Promise<Http2Response>;
  /** Starts a request. Its body ends with the stream. */
  readonly start: (headers?: OutgoingHttpHeaders) => Http2Exchange;
  /** Resolves when the connection has closed. */
  readonly closed: Promise<void>;
}

export interface Http2Exchange {
  readonly stream: ClientHttp2Stream;
  /** Resolves when the head has arrived, with its status. */
  readonly status: Promise<number>;
  readonly response: Promise<Http2Response>;
}

/** What has arrived when the stream has closed. */
export interface Http2Response {
  /** 0 if there was no response. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Alternating names and values, without `:status`. */
  readonly rawHeaders: readonly string[];
  readonly body: string;
  readonly rawTrailers: readonly string[];
  /** The statuses of interim responses. */
  readonly interim: readonly number[];
  /** The code with which the stream ended. 0 is NO_ERROR. */
  readonly code: number | undefined;
}

/** Connects without TLS with prior knowledge, and over TLS by ALPN. Destroy the session at the end of the test. */
export function openHttp2(url: string, options?: SecureClientSessionOptions): Http2Client {
  const session = connect(url, options);
  // Each stream reports it too.
  session.on('error', () => {});
  const { host, protocol } = new URL(url);
  const basis = { ':method': 'GET', ':path': '/', ':authority': host, ':scheme': protocol.slice(0, -1) };
  const start = (headers: OutgoingHttpHeaders = {}) => exchangeOf(session.request({ ...basis, ...headers }));
  return {
    session,
    start,
    async send(headers, body) {
      const { stream, response } = start(headers);
      stream.end(body);
      return response;
    },
    closed: closeOf(session),
  };
}

function exchangeOf(stream: ClientHttp2Stream): Http2Exchange {
  const interim: number[] = [];
  const chunks: Buffer[] = [];
  let head: OutgoingHttpHeaders = {};
  let rawHeaders: readonly string[] = [];
  let rawTrailers: readonly string[] = [];
  stream.on('headers', ({ ':status': status }) => void interim.push(Number(status)));
  stream.on('trailers', (_trailers, _flags, raw: string[]) => {
    rawTrailers = [...raw];
  });
  stream.on('data', (chunk: Buffer) => void chunks.push(chunk)).on('error', () => {});
  const status = new Promise<number>((resolve) => {
    stream.once('response', (headers, _flags, raw: string[]) => {
      head = headers as OutgoingHttpHeaders;
      rawHeaders = raw.slice(2);
      resolve(Number(headers[':status']));
    });
  });
  const response = new Promise<Http2Response>((resolve) => {
    stream.once('close', () => {
      const { ':status': received = 0, ...headers } = head as Http2Response['headers'] & { ':status'?: number };
      const body = Buffer.concat(chunks).toString('latin1');
      resolve({ status: received, headers, rawHeaders, body, rawTrailers, interim, code: stream.rstCode });
    });
  });
  return { stream, status, response };
}

export interface Outcome {
  readonly path: string;
  readonly status: number;
  /** The server says that it has not processed the request. */
  readonly isRefused: boolean;
}

/** Keeps three requests open until the server closes the connection. */
export async function sendUntilGoAway(
  { session, start }: Http2Client,
  pathOf: (sent: number) => string,
): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  let sent = 0;
  let lastServed = 2 ** 31 - 1;
  session.on('goaway', (_code, last: number) => {
    lastServed = last;
  });
  const keepSending = async () => {
    while (!session.closed && !session.destroyed) {
      const path = pathOf(sent);
      sent += 1;
      const { stream, response } = start({ ':path': path });
      const { status, code } = await response;
      const isRefused = code === constants.NGHTTP2_REFUSED_STREAM || Number(stream.id) > lastServed;
      outcomes.push({ path, status, isRefused });
    }
  };
  await Promise.all([keepSending(), keepSending(), keepSending()]);
  return outcomes;
}
