/** The HTTP/2 sessions to one address: requests share them, up to the limit of streams, and wait if all are full. */
import type { Dispatcher } from 'undici';
import { createConnect, type Http2Address } from './connect.ts';
import { Http2Error } from './errors.ts';
import { type RequestBody, type SessionRequest, wrongLength } from './exchange.ts';
import { requestHead } from './request-head.ts';
import { openSession, type Session, type SessionOptions, type SessionParts, streamsOfSessionMax } from './session.ts';

export interface Sessions {
  /** Calls the handler as undici does. Never throws: a request that cannot be sent fails after the call. */
  readonly run: (request: SessionRequest) => void;
  /** Removes the request from the queue, if it is still there. */
  readonly cancel: (request: SessionRequest) => void;
  /** Closes each session as soon as it is idle. Later requests still run, and no session is kept after them. */
  readonly close: () => Promise<void>;
  /** Aborts all requests, including queued ones. Later requests fail. */
  readonly destroy: () => void;
}

export type SessionsOptions = Http2Address & SessionOptions;

/** Opens sessions when requests need them. At most `sessionsMax` take new requests at a time. */
export function createSessions(options: SessionsOptions, sessionsMax: number, parts: SessionParts): Sessions {
  const { protocol, host } = new URL(options.origin);
  const scheme = protocol.slice(0, -1);
  /** The waiting requests, each with the time since which it waits. */
  const queue = new Map<SessionRequest, number>();
  /** Sessions that may take requests, oldest first; those that are not ready yet; and all that are not closed. */
  const ready: Session[] = [];
  const connecting = new Set<Session>();
  const open = new Set<Session>();
  let connect: ReturnType<typeof createConnect> | undefined;
  let isDestroyed = false;
  let closing: Promise<void> | undefined;
  let whenEmpty = () => {};

  function run(request: SessionRequest): void {
    if (isDestroyed) {
      fail(request, destroyed());
      return;
    }
    const nowMs = parts.clock();
    const session = find(request, nowMs);
    if (session !== undefined) send(session, request);
    else {
      queue.set(request, nowMs);
      openForQueue();
    }
  }

  /** Without a younger session, a fresh request takes any, if no other can be opened. */
  function find({ isFresh }: SessionRequest, sinceMs: number): Session | undefined {
    const found = withRoom(isFresh ? sinceMs : 0);
    return found === undefined && isFresh && connecting.size === 0 && isFull() ? withRoom(0) : found;
  }

  /** Returns the oldest session with room, so that later ones become idle. Forgets those that are closing. */
  function withRoom(readySinceMs: number): Session | undefined {
    for (let index = 0; index < ready.length; ) {
      const session = ready[index] as Session;
      if (!session.takesRequests()) ready.splice(index, 1);
      else if (session.hasRoom() && session.readyAtMs() >= readySinceMs) return session;
      else index += 1;
    }
    return undefined;
  }

  function isFull(): boolean {
    return ready.length + connecting.size >= sessionsMax;
  }

  function startQueued(): void {
    for (const [request, sinceMs] of queue) {
      const session = find(request, sinceMs);
      if (session !== undefined) {
        queue.delete(request);
        send(session, request);
      } else if (!request.isFresh) break;
    }
    openForQueue();
  }

  function openForQueue(): void {
    while (queue.size > connecting.size * streamsOfSessionMax && !isFull() && !hasUselessSession()) openOne();
  }

  /** Another session would be of no use either: the service allows no stream at present. */
  function hasUselessSession(): boolean {
    return ready.some((session) => session.streamCount() === 0 && !session.hasRoom());
  }

  function openOne(): void {
    connect ??= createConnect(options);
    const session = openSession(connect, options, parts, { onReady, onRoom, onClosed });
    open.add(session);
    connecting.add(session);
  }

  function onReady(session: Session): void {
    connecting.delete(session);
    ready.push(session);
    onRoom(session);
  }

  function onRoom(session: Session): void {
    if (queue.size > 0) startQueued();
    if (closing !== undefined && session.streamCount() === 0) session.close();
  }

  function onClosed(session: Session, cause: Error | undefined): void {
    open.delete(session);
    const index = ready.indexOf(session);
    if (index !== -1) ready.splice(index, 1);
    if (connecting.delete(session)) failQueue(cause ?? destroyed());
    else if (queue.size > 0) startQueued();
    if (open.size === 0 && queue.size === 0) whenEmpty();
  }

  /** The address is unreachable. Requests still wait if a session of theirs is busy or about to be ready. */
  function failQueue(cause: Error): void {
    if (connecting.size > 0) return;
    for (const request of queue.keys())
      if (ready.length === 0 || request.isFresh) {
        queue.delete(request);
        fail(request, cause);
      }
  }

  function send(session: Session, request: SessionRequest): void {
    request.connection = oneSocket;
    request.openSocket = session.isProven() ? 1 : 0;
    try {
      const head = requestHead(request.options, scheme, host);
      const declaredBytes = lengthIn(head);
      const body = bodyOf(request.options.body);
      if (body instanceof Uint8Array) addLength(head, declaredBytes, body.byteLength);
      const sent = isEmpty(body) ? null : body;
      session.request(head, request, sent).send(sent, declaredBytes);
    } catch (cause) {
      fail(request, cause as Error);
    }
  }

  function close(): Promise<void> {
    closing ??= new Promise<void>((resolve) => {
      whenEmpty = resolve;
      for (const session of ready) if (session.streamCount() === 0 && queue.size === 0) session.close();
      if (open.size === 0 && queue.size === 0) resolve();
    });
    return closing;
  }

  function destroy(): void {
    isDestroyed = true;
    const waiting = [...queue.keys()];
    queue.clear();
    for (const session of [...open]) session.destroy(destroyed());
    for (const request of waiting) fail(request, destroyed());
  }

  return Object.freeze({ run, cancel: (request: SessionRequest) => void queue.delete(request), close, destroy });
}

const oneSocket = Object.freeze({ socketsOpened: 1 });

/** Not before the caller has returned, who may not expect it earlier. */
function fail({ handler }: SessionRequest, cause: Error): void {
  queueMicrotask(() => handler.onResponseError?.(noController, cause));
}

/** For a request that has no stream. */
const noController: Dispatcher.DispatchController = Object.freeze({
  aborted: true,
  paused: false,
  reason: null,
  abort() {},
  pause() {},
  resume() {},
});

function destroyed(): Http2Error {
  return new Http2Error('HTTP2_DESTROYED', 'the sessions to the service are closed');
}

/** Returns bytes for a body in memory. */
function bodyOf(body: Dispatcher.DispatchOptions['body']): RequestBody {
  return typeof body === 'string' ? Buffer.from(body) : (body ?? null);
}

/** No frame needs to be sent for an empty body. */
function isEmpty(body: RequestBody): boolean {
  return body instanceof Uint8Array && body.byteLength === 0;
}

/** Returns the `content-length` of a request. */
function lengthIn(head: readonly string[]): number | undefined {
  for (let index = 0; index < head.length; index += 2)
    if (head[index] === 'content-length') return Number(head[index + 1]);
  return undefined;
}

function addLength(head: string[], declaredBytes: number | undefined, bytes: number): void {
  if (declaredBytes === undefined) head.push('content-length', String(bytes));
  else if (declaredBytes !== bytes) throw wrongLength();
}
