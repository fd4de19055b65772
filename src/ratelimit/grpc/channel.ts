/** One address of a distant limiter: one HTTP/2 session at a time, its breaker, and the outcome of each call. */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { type Admission, type BreakerOptions, createBreaker, startDeadline } from '../breaker.ts';

export interface Target {
  readonly host: string;
  readonly port: number;
}

export interface Channel {
  /** Settles at the latest after `timeoutMs`, and never rejects; at once while the address is known to be down. */
  call(path: string, message: Buffer, timeoutMs: number): Promise<CallResult>;
  /** Ends the connection, and with it the calls that run. */
  close(): Promise<void>;
}

/**
 * `message` and `status` are answers of the service; `invalid` is an answer that is not gRPC: it is alive, but of no use.
 * `timedOut`: no answer by the deadline. `disconnected`: the connection failed or could not be made.
 */
export type CallResult =
  | { readonly kind: 'message'; readonly message: Buffer }
  | { readonly kind: 'status'; readonly code: number; readonly message: string }
  | { readonly kind: 'invalid' | 'timedOut' | 'disconnected'; readonly reason: string };

/** A connect may take longer than the first call waits for it. */
const connectMsMax = 1_000;

/** Connects at the first call, and again when the connection is gone; reads its address at each connect. */
export function createChannel(target: () => Target, breakerOptions: BreakerOptions): Channel {
  const breaker = createBreaker(breakerOptions);
  let session: ClientHttp2Session | undefined;
  let closed = false;
  let lastFailure = '';

  async function call(path: string, message: Buffer, timeoutMs: number): Promise<CallResult> {
    if (closed) return disconnected('the client is closed');
    const admission = breaker.admit();
    if (admission === 'rejected') return disconnected(`it is down, and asked again in a while (${lastFailure})`);
    let used: ClientHttp2Session;
    let stream: ClientHttp2Stream;
    try {
      used = usableSession();
      stream = used.request(callHeaders(path, timeoutMs));
    } catch (error) {
      return report(disconnected(messageOf(error)), admission);
    }
    return report(await readResult(used, stream, formatFrame(message), timeoutMs), admission, used);
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
    // A connect has its own deadline, which may be longer than a call's.
    if (used?.connecting === false) drop(used, 'it does not answer');
  }

  function reportLoss(reason: string, admission: Admission, used: ClientHttp2Session | undefined): void {
    lastFailure = reason;
    breaker.failed(admission);
    if (used !== undefined) drop(used, reason);
  }

  function usableSession(): ClientHttp2Session {
    if (session === undefined || session.closed || session.destroyed) session = openSession(target());
    return session;
  }

  function drop(used: ClientHttp2Session, reason: string): void {
    if (session === used) session = undefined;
    used.destroy(new Error(reason));
  }

  return Object.freeze({
    call,
    async close(): Promise<void> {
      closed = true;
      if (session === undefined || session.destroyed) return;
      const ending = session;
      await new Promise<void>((resolve) => {
        ending.once('close', resolve);
        ending.destroy(new Error('the client is closed'));
      });
    },
  });
}

/** Does not keep the process alive. */
function openSession({ host, port }: Target): ClientHttp2Session {
  const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const session = connectHttp2(`http://${authority}`, {
    settings: { enablePush: false },
    createConnection: () => connectSocket({ host, port }),
  });
  const stopDeadline = startDeadline(connectMsMax, () =>
    session.destroy(new Error(`no connection within ${connectMsMax} ms`)),
  );
  session.unref();
  session.once('connect', stopDeadline);
  session.once('close', stopDeadline);
  // Each call reports what became of it; without a listener the process would end.
  session.on('error', () => {});
  return session;
}

/**
 * Names and values in turn: Node turns an object into such a list at each call, for an eighth of its time. It adds the
 * scheme and the authority of the session.
 */
function callHeaders(path: string, timeoutMs: number): readonly string[] {
  const timeout = Math.min(Math.max(1, Math.ceil(timeoutMs * serviceDeadlineFactor)), 99_999_999);
  return [
    ...[':method', 'POST', ':path', path],
    ...['content-type', 'application/grpc', 'te', 'trailers'],
    ...['grpc-timeout', `${timeout}m`, 'grpc-accept-encoding', 'identity'],
  ];
}

/** The service gets a longer deadline than our own: when it is busy, it must not end a call whose answer we still wait for. */
const serviceDeadlineFactor = 10;

/** An answer has a hundred bytes for each descriptor. */
const answerBytesMax = 65_536;

/** What has arrived of an answer. */
interface Reply {
  headers?: IncomingHttpHeaders & IncomingHttpStatusHeader;
  trailers?: IncomingHttpHeaders;
  readonly chunks: Buffer[];
  error?: Error;
}

/** Always settles, at the latest at the deadline, and never rejects. */
function readResult(
  session: ClientHttp2Session,
  stream: ClientHttp2Stream,
  frame: Buffer,
  timeoutMs: number,
): Promise<CallResult> {
  return new Promise((resolve) => {
    const reply: Reply = { chunks: [] };
    let bytes = 0;
    const abandon = (kind: 'invalid' | 'timedOut', reason: string): void => {
      stopDeadline();
      resolve({ kind, reason });
      // A stream that waits for the connect has sent nothing yet, and must not do so later.
      if (stream.pending) stream.destroy();
      else stream.close(constants.NGHTTP2_CANCEL);
    };
    const stopDeadline = startDeadline(timeoutMs, () =>
      abandon('timedOut', `it did not answer within ${timeoutMs} ms`),
    );
    stream.on('response', (headers) => {
      reply.headers = headers;
    });
    stream.on('trailers', (trailers) => {
      reply.trailers = trailers;
    });
    stream.on('data', (chunk: Buffer) => {
      reply.chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > answerBytesMax) abandon('invalid', `its answer is longer than ${answerBytesMax} bytes`);
    });
    stream.on('error', (error) => {
      reply.error = error;
    });
    stream.on('close', () => {
      stopDeadline();
      resolve(resultOf(reply, stream.rstCode ?? 0, session.destroyed));
    });
    stream.end(frame);
  });
}

function resultOf(reply: Reply, resetCode: number, isDisconnected: boolean): CallResult {
  const code = grpcStatusOf(reply);
  if (code === deadlineExceeded) return timedOut;
  if (code === undefined) return resultWithoutStatus(reply, resetCode, isDisconnected);
  if (code !== 0) return { kind: 'status', code, message: grpcMessageOf(reply) };
  const message = parseFrame(Buffer.concat(reply.chunks));
  return message === undefined ? invalid('its answer is not one uncompressed message') : { kind: 'message', message };
}

/** The service knows our deadline, and may end the call as well; grpc-go then resets the stream with CANCEL. */
const deadlineExceeded = 4;
const timedOut: CallResult = Object.freeze({ kind: 'timedOut', reason: 'it ended the call at its deadline' });

/** Any error but a reset of this one stream ends the whole session, or shows that it has ended. */
function resultWithoutStatus({ headers, error }: Reply, resetCode: number, isDisconnected: boolean): CallResult {
  const isSessionError = error !== undefined && (error as NodeJS.ErrnoException).code !== 'ERR_HTTP2_STREAM_ERROR';
  if (isDisconnected || isSessionError) return disconnected(error?.message ?? 'the connection ended');
  if (resetCode === constants.NGHTTP2_CANCEL) return timedOut;
  if (headers === undefined) return invalid(`it reset the stream (${resetCode})`);
  if (headers[':status'] !== 200) return invalid(`it answered with HTTP status ${headers[':status']}`);
  return invalid(isGrpc(headers) ? 'its answer has no grpc-status' : 'its answer is not gRPC');
}

/** From the trailers, or from the headers of an answer without a body; undefined if the answer is not gRPC, or cut short. */
function grpcStatusOf({ headers, trailers }: Reply): number | undefined {
  if (headers?.[':status'] !== 200 || !isGrpc(headers)) return undefined;
  const text = String((trailers ?? headers)['grpc-status']);
  return /^\d{1,3}$/.test(text) ? Number(text) : undefined;
}

function isGrpc(headers: IncomingHttpHeaders): boolean {
  return headers['content-type']?.startsWith('application/grpc') === true;
}

/** `grpc-message` is percent-encoded; invalid encoding is kept as it is. */
function grpcMessageOf({ headers, trailers }: Reply): string {
  const text = String((trailers ?? headers)?.['grpc-message'] ?? '');
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function invalid(reason: string): CallResult {
  return { kind: 'invalid', reason };
}

function disconnected(reason: string): CallResult {
  return { kind: 'disconnected', reason };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const frameHeaderBytes = 5;

/** A byte for the compression, the length in four bytes, and the message (PROTOCOL-HTTP2.md of grpc/grpc, Length-Prefixed-Message). */
function formatFrame(message: Buffer): Buffer {
  const frame = Buffer.allocUnsafe(frameHeaderBytes + message.length);
  frame.writeUInt8(0, 0);
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, frameHeaderBytes);
  return frame;
}

/** The one uncompressed message that `frame` holds; undefined if it is compressed, cut short or not alone. */
function parseFrame(frame: Buffer): Buffer | undefined {
  if (frame.length < frameHeaderBytes || frame.readUInt8(0) !== 0) return undefined;
  if (frame.readUInt32BE(1) !== frame.length - frameHeaderBytes) return undefined;
  return frame.subarray(frameHeaderBytes);
}
