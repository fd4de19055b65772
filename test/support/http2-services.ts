/** Services that speak HTTP/2, and one exchange with them as one promise. */
import {
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  type ServerOptions,
} from 'node:http2';
import type { Server, Socket } from 'node:net';
import type { Dispatcher } from 'undici';
import { createSessions, type Sessions, type SessionsOptions } from '#http';
import type { ManualTime } from './clusters.ts';
import type { Served, TestServers } from './serve.ts';

export interface Http2Service extends Served {
  /** All sessions so far, in the order in which they opened. */
  readonly sessions: readonly ServerHttp2Session[];
  /** The connections of the sessions. */
  readonly sockets: readonly Socket[];
  /** All streams so far, in the order of arrival. */
  readonly streams: readonly ServerHttp2Stream[];
}

/** Calls `onStream` for each request. Serves clear text with prior knowledge. */
export async function startHttp2(
  servers: TestServers,
  onStream: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void,
  options: ServerOptions = {},
): Promise<Http2Service> {
  const sessions: ServerHttp2Session[] = [];
  const streams: ServerHttp2Stream[] = [];
  const sockets: Socket[] = [];
  const server = createServer(options)
    .on('connection', (socket) => void sockets.push(socket))
    .on('session', (session) => void sessions.push(session))
    .on('sessionError', () => {})
    .on('stream', (stream, headers) => {
      streams.push(stream.on('error', () => {}));
      onStream(stream, headers);
    });
  return { ...(await servers.listen(server as Server)), sessions, sockets, streams };
}

/** Responds with `ok`, or with the given body. */
export function respond(stream: ServerHttp2Stream, body: string | Buffer = 'ok'): void {
  stream.respond({ ':status': 200 });
  stream.end(body);
}

/** Empty SETTINGS, which is all that a client needs to begin. */
const settingsFrame = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);

/** A service that sends its settings and nothing else, whatever it receives. */
export function startMute(servers: TestServers, onData: (socket: Socket, data: Buffer) => void = () => {}) {
  return servers.tcp((socket) => {
    socket.on('data', (data) => onData(socket, data));
    socket.write(settingsFrame);
  });
}

/** How often a frame of this type is in the data, if the data consists of whole frames. */
export function framesIn(data: Buffer, type: number): readonly Buffer[] {
  const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
  const found: Buffer[] = [];
  let at = data.toString('latin1', 0, preface.length) === preface ? preface.length : 0;
  while (at + 9 <= data.length) {
    const end = at + 9 + data.readUIntBE(at, 3);
    if (data[at + 3] === type) found.push(data.subarray(at, end));
    at = end;
  }
  return found;
}

export interface SessionsSetUp extends Pick<SessionsOptions, 'tls' | 'serverName'> {
  readonly sessionsMax?: number;
  readonly time?: ManualTime;
  readonly connectTimeoutMs?: number;
  readonly idleConnectionMs?: number;
  readonly connectionLifetimeMs?: number;
  readonly headerBytesMax?: number;
  readonly onGoaway?: () => void;
}

/** Opens sessions that are destroyed after the test. */
export function sessionsTo(
  servers: TestServers,
  { origin }: Pick<Served, 'origin'>,
  setUp: SessionsSetUp = {},
): Sessions {
  const { sessionsMax = 10, time, headerBytesMax, onGoaway, connectTimeoutMs = 5000, ...options } = setUp;
  const timer = (run: () => void, delayMs: number) => {
    const timeout = setTimeout(run, delayMs).unref();
    return () => clearTimeout(timeout);
  };
  const { clock } = time ?? { clock: () => performance.now() };
  const parts = { clock, random: () => 0, timer: time?.timer ?? timer, headerBytesMax, onGoaway };
  const sessions = createSessions({ origin, connectTimeoutMs, ...options }, sessionsMax, parts);
  servers.later(sessions.destroy);
  return sessions;
}

export interface Received {
  readonly status: number;
  readonly headers: readonly string[];
  readonly body: Buffer;
  readonly trailers: readonly string[];
  readonly endsWithHead: boolean;
  /** The statuses and headers of interim responses. */
  readonly interims: readonly (readonly [status: number, headers: readonly string[]])[];
  /** True if a failure may have meant that the session was closed as idle. */
  readonly isReused: boolean;
}

export interface Sent {
  readonly response: Promise<Received>;
  /** Resolves when the head of the request has been sent. */
  readonly started: Promise<void>;
  readonly cancel: () => void;
  readonly abort: (reason: Error) => void;
  /** Resolves with the controller at the head of the response. */
  readonly head: Promise<Dispatcher.DispatchController>;
  /** The bytes of the response body so far. */
  readonly bytes: () => number;
}

interface SendOptions extends Partial<Dispatcher.DispatchOptions> {
  readonly isFresh?: boolean;
  /** Pauses the response at its head. */
  readonly isPaused?: boolean;
}

export function send(sessions: Sessions, { isFresh = false, isPaused = false, ...options }: SendOptions = {}): Sent {
  const chunks: Buffer[] = [];
  const interims: [number, string[]][] = [];
  const [response, resolve, reject] = createPromise<Received>();
  const [head, onHead] = createPromise<Dispatcher.DispatchController>();
  const [started, onStarted] = createPromise<void>();
  let controller: Dispatcher.DispatchController | undefined;
  let found = { status: 0, headers: [] as string[], endsWithHead: false };
  const rawOf = (raw: unknown) => (raw ?? []) as string[];
  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(one) {
      controller = one;
      onStarted();
    },
    onResponseStart(one, status) {
      if (status < 200) interims.push([status, rawOf(one.rawHeaders)]);
      else {
        found = { status, headers: rawOf(one.rawHeaders), endsWithHead: Reflect.get(one, 'endsWithHead') === true };
        if (isPaused) one.pause();
        onHead(one);
      }
    },
    onResponseData: (_one, chunk) => void chunks.push(chunk),
    onResponseEnd: (one) =>
      resolve({
        ...found,
        body: Buffer.concat(chunks),
        trailers: rawOf(one.rawTrailers),
        interims,
        isReused: request.openSocket > 0,
      }),
    onResponseError: (_one, cause) => reject(Object.assign(cause, { isReused: request.openSocket > 0 })),
  };
  const request = {
    options: { method: 'GET', path: '/', ...options },
    handler,
    isFresh,
    connection: undefined,
    openSocket: 0,
  };
  // A test may look at the failure later.
  response.catch(() => {});
  sessions.run(request);
  return {
    response,
    head,
    started,
    cancel: () => sessions.cancel(request),
    abort: (reason) => controller?.abort(reason),
    bytes: () => chunks.reduce((sum, { length }) => sum + length, 0),
  };
}

function createPromise<T>(): [promise: Promise<T>, resolve: (value: T) => void, reject: (cause: unknown) => void] {
  let settle: [(value: T) => void, (cause: unknown) => void] = [() => {}, () => {}];
  const promise = new Promise<T>((resolve, reject) => {
    settle = [resolve, reject];
  });
  return [promise, ...settle];
}

/** The code of the error with which the request failed. */
export async function codeOf({ response }: Sent): Promise<unknown> {
  return response.then(
    ({ status }) => status,
    ({ code }) => code,
  );
}
