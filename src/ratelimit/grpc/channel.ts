/** A gRPC channel to one address of a remote limiter, with a single HTTP/2 session and a circuit breaker. */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import type { Socket } from 'node:net';
import { decodeGrpcMessage, formatGrpcFrame, grpcStatus, isGrpcType, parseGrpcFrame, parseGrpcStatus } from '#http';
import { type Admission, type BreakerOptions, createBreaker, startDeadline } from '../breaker.ts';

export interface Target {
  readonly host: string;
  readonly port: number;
}

/** Opens a connection, which may fail later, but does not throw. */
export type Connect = (target: Target) => Socket;

export interface Channel {
  /**
   * Resolves after `timeoutMs` at the latest, and immediately while the address is known to be down. Never rejects.
   */
  call(path: string, message: Buffer, timeoutMs: number): Promise<CallResult>;
  /** Closes the connection when its running calls have ended. Later calls fail. */
  drain(): Promise<void>;
  /** Closes the connection and aborts running calls. */
  close(): Promise<void>;
}

/**
 * The outcome of a call:
 *
 * - `message` and `status`: a gRPC response of the service
 * - `invalid`: a response that is not valid gRPC, from a server that is up
 * - `refused`: the service has not processed the call, for example because it is stopping
 * - `timedOut`: no response by the deadline
 * - `disconnected`: the connection broke or could not be established
 */
export type CallResult =
  | { readonly kind: 'message'; readonly message: Buffer }
  | { readonly kind: 'status'; readonly code: number; readonly message: string }
  | {
      readonly kind: 'invalid' | 'refused' | 'timedOut' | 'disconnected';
      readonly reason: string;
      /** The earlier failure because of which the call was not tried. */
      readonly failure?: string;
    };

/** A connection attempt may outlast the deadline of the call that started it. */
const connectMsMax = 1_000;

/** Connects on the first call, and reconnects after a lost connection. Calls `target` for every attempt. */
export function createChannel(target: () => Target, connect: Connect, breakerOptions: BreakerOptions): Channel {
  const breaker = createBreaker(breakerOptions);
  let session: ClientHttp2Session | undefined;
  let closed = false;
  let lastFailure = '';

  /** Repeats a refused call once. A server that stops refuses the calls that were on their way (RFC 9113 section 6.8). */
  async function call(path: string, message: Buffer, timeoutMs: number): Promise<CallResult> {
    const startedMs = breakerOptions.clock();
    const result = await attempt(path, message, timeoutMs);
    if (result.kind !== 'refused') return result;
    const leftMs = timeoutMs - (breakerOptions.clock() - startedMs);
    return leftMs > 0 ? attempt(path, message, leftMs) : result;
  }

  function attempt(path: string, message: Buffer, timeoutMs: number): CallResult | Promise<CallResult> {
    if (closed) return disconnected('the client is closed');
    const admission = breaker.admit();
    if (admission === 'rejected') {
      const reason = `it is down and will be retried shortly (${lastFailure})`;
      return { kind: 'disconnected', reason, failure: lastFailure };
    }
    let used: ClientHttp2Session;
    let stream: ClientHttp2Stream;
    try {
      used = usableSession();
      stream = used.request(callHeaders(path, timeoutMs));
    } catch (error) {
      return report(disconnected((error as Error).message), admission);
    }
    return new Promise((resolve) => {
      const onResult = (result: CallResult) => resolve(report(result, admission, used));
      sendCall(used, stream, formatGrpcFrame(message), timeoutMs, onResult);
    });
  }

  function report(result: CallResult, admission: Admission, used?: ClientHttp2Session): CallResult {
    if (result.kind === 'timedOut') reportTimeout(result.reason, admission, used);
    else if (result.kind === 'disconnected') reportLoss(result.reason, admission, used);
    else breaker.responded();
    return result;
  }

  function reportTimeout(reason: string, admission: Admission, used: ClientHttp2Session | undefined): void {
    if (!breaker.timedOut(admission)) return;
    lastFailure = reason;
    // A connection attempt has a separate deadline, which may be longer than that of a call.
    if (used?.connecting === false) drop(used, 'it does not respond');
  }

  function reportLoss(reason: string, admission: Admission, used: ClientHttp2Session | undefined): void {
    lastFailure = reason;
    breaker.failed(admission);
    if (used !== undefined) drop(used, reason);
  }

  function usableSession(): ClientHttp2Session {
    if (session === undefined || session.closed || session.destroyed) session = openSession(target(), connect);
    return session;
  }

  function drop(used: ClientHttp2Session, reason: string): void {
    if (session === used) session = undefined;
    used.destroy(new Error(reason));
  }

  async function end(how: (ending: ClientHttp2Session) => void): Promise<void> {
    closed = true;
    const ending = session;
    if (ending === undefined || ending.destroyed) return;
    await new Promise<void>((resolve) => {
      ending.once('close', resolve);
      how(ending);
    });
  }

  return Object.freeze({
    call,
    drain: () => end((ending) => ending.close()),
    close: () => end((ending) => ending.destroy(new Error('the client is closed'))),
  });
}

/** Opens a session that does not keep the process alive. */
function openSession({ host, port }: Target, connect: Connect): ClientHttp2Session {
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const session = connectHttp2(`http://${authority}`, {
    settings: { enablePush: false },
    // After a GOAWAY, Node only ends the socket, which a service that never ends its side would keep open forever.
    createConnection: () => connect({ host, port }).once('finish', closeSocket),
  });
  const stopDeadline = startDeadline(connectMsMax, () =>
    session.destroy(new Error(`no connection within ${connectMsMax} ms`)),
  );
  session.unref();
  session.once('connect', stopDeadline);
  session.once('close', stopDeadline);
  // Every call reports its own outcome. Without a listener, an error would crash the process.
  session.on('error', () => {});
  return session;
}

function closeSocket(this: Socket): void {
  this.destroy();
}

/**
 * Returns alternating names and values, which Node sends without converting them. Node adds `:scheme` and `:authority`
 * from the session.
 */
function callHeaders(path: string, timeoutMs: number): readonly string[] {
  const timeout = Math.min(Math.max(1, Math.ceil(timeoutMs * serviceDeadlineFactor)), 99_999_999);
  return [
    ':method',
    'POST',
    ':path',
    path,
    'content-type',
    'application/grpc',
    'te',
    'trailers',
    'grpc-timeout',
    `${timeout}m`,
    'grpc-accept-encoding',
    'identity',
  ];
}

/** The deadline sent to the service is longer than ours, so that it never ends a call while we are still waiting. */
const serviceDeadlineFactor = 10;

/** Ample: a response has about a hundred bytes for each descriptor. */
const responseBytesMax = 65_536;

/** A call in progress, with the parts of the response that have arrived. */
interface PendingCall {
  readonly session: ClientHttp2Session;
  readonly onResult: (result: CallResult) => void;
  readonly stopDeadline: () => void;
  headers: (IncomingHttpHeaders & IncomingHttpStatusHeader) | undefined;
  trailers: IncomingHttpHeaders | undefined;
  readonly chunks: Buffer[];
  bytes: number;
  error: Error | undefined;
}

const pendingKey = Symbol('pending call');
/** The call is a property of its stream, because listeners that close over it would be created for each call. */
type CallStream = ClientHttp2Stream & { [pendingKey]?: PendingCall | undefined };

/** Calls `onResult` by the deadline at the latest, once. */
function sendCall(
  session: ClientHttp2Session,
  stream: CallStream,
  frame: Buffer,
  timeoutMs: number,
  onResult: (result: CallResult) => void,
): void {
  const stopDeadline = startDeadline(timeoutMs, () =>
    abandon(stream, 'timedOut', `it did not respond within ${Math.round(timeoutMs)} ms`),
  );
  stream[pendingKey] = {
    session,
    onResult,
    stopDeadline,
    headers: undefined,
    trailers: undefined,
    chunks: [],
    bytes: 0,
    error: undefined,
  };
  stream.on('response', onResponse).on('trailers', onTrailers).on('data', onData);
  stream.on('error', onError).on('close', onClose);
  stream.end(frame);
}

function abandon(stream: CallStream, kind: 'invalid' | 'timedOut', reason: string): void {
  takePending(stream)?.onResult({ kind, reason });
  // A stream that is waiting for the connection has sent nothing yet. Destroy it so that it never does.
  if (stream.pending) stream.destroy();
  else stream.close(constants.NGHTTP2_CANCEL);
}

/**
 * Ends the call. V8 keeps a closed stream until it collects the whole heap, so the stream must not keep the call and, with
 * it, the request.
 */
function takePending(stream: CallStream): PendingCall | undefined {
  const pending = stream[pendingKey];
  stream[pendingKey] = undefined;
  pending?.stopDeadline();
  return pending;
}

function onResponse(this: CallStream, headers: IncomingHttpHeaders & IncomingHttpStatusHeader): void {
  const pending = this[pendingKey];
  if (pending !== undefined) pending.headers = headers;
}

function onTrailers(this: CallStream, trailers: IncomingHttpHeaders): void {
  const pending = this[pendingKey];
  if (pending !== undefined) pending.trailers = trailers;
}

function onData(this: CallStream, chunk: Buffer): void {
  const pending = this[pendingKey];
  if (pending === undefined) return;
  pending.chunks.push(chunk);
  pending.bytes += chunk.length;
  if (pending.bytes > responseBytesMax)
    abandon(this, 'invalid', `its response is longer than ${responseBytesMax} bytes`);
}

/** A listener is necessary even after the call has ended: otherwise the error would crash the process. */
function onError(this: CallStream, error: Error): void {
  const pending = this[pendingKey];
  if (pending !== undefined) pending.error = error;
}

function onClose(this: CallStream): void {
  const pending = takePending(this);
  pending?.onResult(resultOf(pending, this.rstCode ?? 0));
}

function resultOf(call: PendingCall, resetCode: number): CallResult {
  const code = grpcStatusOf(call);
  if (code === grpcStatus.DEADLINE_EXCEEDED) return timedOut;
  if (code === undefined) return resultWithoutStatus(call, resetCode);
  if (code !== 0) return { kind: 'status', code, message: grpcMessageOf(call) };
  const message = parseGrpcFrame(Buffer.concat(call.chunks));
  return message === undefined
    ? invalid('its response is not a single uncompressed message')
    : { kind: 'message', message };
}

/** The service may end the call at the deadline we sent. grpc-go resets the stream with CANCEL in that case. */
const timedOut: CallResult = Object.freeze({ kind: 'timedOut', reason: 'it ended the call at its deadline' });

const remedy = 'use the port on which it accepts gRPC without TLS';

/** A port that expects TLS ends the connection without a response. So does a service that stops. */
const endedMessage = `the connection ended; if it expects TLS, ${remedy}`;

/** Any error other than a reset of this stream means that the whole session has ended or is about to. */
function resultWithoutStatus({ session, headers, error }: PendingCall, resetCode: number): CallResult {
  const { code, message = endedMessage } = (error ?? {}) as Partial<NodeJS.ErrnoException>;
  if (code === 'ERR_HTTP2_ERROR') return disconnected(`its response is not HTTP/2 (${message}): ${remedy}`);
  if (session.destroyed || (error !== undefined && code !== 'ERR_HTTP2_STREAM_ERROR')) return disconnected(message);
  if (resetCode === constants.NGHTTP2_CANCEL) return timedOut;
  if (resetCode === constants.NGHTTP2_REFUSED_STREAM) return { kind: 'refused', reason: 'it refused the call' };
  if (headers === undefined) return invalid(`it reset the stream (${resetCode})`);
  if (headers[':status'] !== 200) return invalid(`it responded with HTTP status ${headers[':status']}`);
  return invalid(isGrpcType(headers['content-type']) ? 'its response has no grpc-status' : 'its response is not gRPC');
}

/**
 * Reads the status from the trailers, or from the headers of a response without a body. Returns undefined if the
 * response is not gRPC or was truncated.
 */
function grpcStatusOf({ headers, trailers }: PendingCall): number | undefined {
  if (headers?.[':status'] !== 200 || !isGrpcType(headers['content-type'])) return undefined;
  return parseGrpcStatus(String((trailers ?? headers)['grpc-status']));
}

function grpcMessageOf({ headers, trailers }: PendingCall): string {
  return decodeGrpcMessage(String((trailers ?? headers)?.['grpc-message'] ?? ''));
}

function invalid(reason: string): CallResult {
  return { kind: 'invalid', reason };
}

function disconnected(reason: string): CallResult {
  return { kind: 'disconnected', reason };
}
