/** A connection that comes and goes: one HTTP/2 session at a time, opened when a call needs it. */
import type { LookupFunction } from 'node:net';
import { type Admission, createBreaker } from './breaker.ts';
import { type Answer, callHeaders, callUnary } from './grpc-call.ts';
import { type Http2Session, openHttp2Session } from './http2-session.ts';

export interface Target {
  readonly host: string;
  readonly port: number;
}

export interface ChannelOptions {
  readonly target: () => Target;
  readonly path: string;
  readonly timeoutMs: number;
  readonly clock: () => number;
  readonly random: () => number;
  /** How a host's name becomes an address. @default the system's way */
  readonly lookup?: LookupFunction | undefined;
}

export interface Channel {
  /** Never rejects. */
  call(message: Uint8Array): Promise<Answer>;
  close(): Promise<void>;
}

/** A connect may take longer than the first call waits for it. */
const connectMsMax = 1_000;

/** Connections die without a word. One that answers nothing for so long is given up, however patient TCP is. */
const silenceMsMax = 1_000;

export function openChannel({ target, path, timeoutMs, clock, random, lookup }: ChannelOptions): Channel {
  const breaker = createBreaker({ clock, random });
  let current: Http2Session | undefined;
  let closed = false;
  let silentSinceMs: number | undefined;
  let lastReason = '';

  async function call(message: Uint8Array): Promise<Answer> {
    if (closed) return lost('the client is closed');
    const admission = breaker.admit();
    if (admission === 'refused') return lost(`it is down, and asked again in a while (${lastReason})`);
    const session = currentSession();
    if (session instanceof Error) return learn(lost(session.message), admission);
    const startedMs = clock();
    const answer = await callUnary({ session, message, timeoutMs });
    if (answer.kind === 'late') return learnLate(answer, admission, session, startedMs);
    return learn(answer, admission);
  }

  /** Any answer, even a useless one, shows that there is somebody. */
  function learn(answer: Answer, admission: Admission): Answer {
    if (answer.kind === 'lost') {
      lastReason = answer.reason;
      breaker.failed(admission);
    } else {
      silentSinceMs = undefined;
      breaker.answered();
    }
    return answer;
  }

  /** Being late is forgiven to a service that was up, until it has been silent for too long. */
  function learnLate(answer: Answer, admission: Admission, session: Http2Session, startedMs: number): Answer {
    silentSinceMs ??= startedMs;
    if (admission === 'open' && clock() - silentSinceMs < silenceMsMax) return answer;
    silentSinceMs = undefined;
    // One that still connects has a time limit of its own, which may be longer than a call's.
    if (!session.isConnecting()) abandon(session);
    return learn(lost(`it said nothing for ${timeoutMs} ms`), admission);
  }

  function abandon(session: Http2Session): void {
    if (current === session) current = undefined;
    session.destroy(new Error('it answers nothing'));
  }

  function currentSession(): Http2Session | Error {
    try {
      current ??= open();
      return current;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  function open(): Http2Session {
    const { host, port } = target();
    const authority = `${host.includes(':') ? `[${host}]` : host}:${port}`;
    const session = openHttp2Session({
      host,
      port,
      lookup,
      timeoutMs: connectMsMax,
      headers: callHeaders(authority, path, timeoutMs),
      onGone() {
        if (current === session) current = undefined;
      },
    });
    return session;
  }

  return Object.freeze({
    call,
    async close(): Promise<void> {
      closed = true;
      await current?.close();
    },
  });
}

function lost(reason: string): Answer {
  return { kind: 'lost', reason };
}
