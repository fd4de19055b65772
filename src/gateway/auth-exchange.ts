/** One question to an auth service: to the best of its addresses, once more where that can help, and no longer than told. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Attempt, Cluster, GiveUpSignal } from '#proxy';

export interface AuthReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Undefined when it could not be had whole, or is larger than 64 KiB. */
  readonly body: Buffer | undefined;
}

export type QuestionOptions = Pick<Dispatcher.DispatchOptions, 'method' | 'path' | 'headers' | 'body'>;

/**
 * A question has no effect, so one that met a connection which its other end was just closing, or an address that is
 * down while there is another, is put once more. Rejects with the cause when there is no answer.
 */
export async function askCluster(cluster: Cluster, options: QuestionOptions, signal: GiveUpSignal): Promise<AuthReply> {
  const first = cluster.attempt();
  const found = await askAddress(first, options, signal);
  if ('status' in found) return found;
  if (signal.aborted) throw found.cause;
  const second = cluster.attempt([first.origin]);
  if (second.origin === first.origin && !found.wasReused) {
    second.settle({ kind: 'abandoned' });
    second.release();
    throw found.cause;
  }
  const again = await askAddress(second, options, signal, found.wasReused ? 'fresh' : undefined);
  if ('status' in again) return again;
  throw again.cause;
}

/** Why there is no reply; `wasReused`: it may be that the connection was closed for being idle. */
interface Silence {
  readonly cause: unknown;
  readonly wasReused: boolean;
}

function askAddress(
  attempt: Attempt,
  options: QuestionOptions,
  signal: GiveUpSignal,
  connection?: 'fresh',
): Promise<AuthReply | Silence> {
  return new Promise((resolve) => {
    const { handler, giveUp } = createReading(attempt, (found) => {
      signal.removeListener('abort', onAbort);
      resolve(found);
    });
    const onAbort = () => giveUp(signal.reason);
    signal.once('abort', onAbort);
    attempt.dispatch({ ...options, origin: attempt.origin, headersTimeout: 0, bodyTimeout: 0 }, handler, connection);
  });
}

const bodyBytesMax = 64 * 1024;

/** The status is the verdict: a body that fails, or never ends, does not change it. */
function createReading(attempt: Attempt, tell: (found: AuthReply | Silence) => void) {
  const chunks: Buffer[] = [];
  let bytes = 0;
  let reply: Omit<AuthReply, 'body'> | undefined;
  let connection: Dispatcher.DispatchController | undefined;
  let givenUp: Error | undefined;
  let isOver = false;

  function end(body: Buffer | undefined, cause?: unknown): void {
    if (isOver) return;
    isOver = true;
    tell(reply === undefined ? { cause, wasReused: attempt.isReused() } : { ...reply, body });
  }

  const handler: Dispatcher.DispatchHandler = {
    onRequestStart(started) {
      connection = started;
      if (givenUp !== undefined) started.abort(givenUp);
    },
    onResponseStart(_controller, status, headers) {
      if (status < 200) return;
      reply = { status, headers };
      attempt.settle({ kind: 'answered', status });
    },
    onResponseData(controller, chunk) {
      bytes += chunk.length;
      if (bytes <= bodyBytesMax) chunks.push(chunk);
      else controller.abort(new Error(`the body is larger than ${bodyBytesMax} bytes`));
    },
    onResponseEnd() {
      attempt.release();
      end(Buffer.concat(chunks));
    },
    onResponseError(_controller, cause) {
      attempt.settle({ kind: 'failed', cause });
      end(undefined, cause);
      attempt.release();
    },
  };

  /** At once: who still waits for a connection would hear of it only when there is one. */
  function giveUp(reason: GiveUpSignal['reason']): void {
    givenUp = reason ?? new Error('given up');
    attempt.settle(reason?.code === 'ECONNRESET' ? { kind: 'abandoned' } : { kind: 'failed', cause: givenUp });
    end(undefined, givenUp);
    if (connection === undefined) attempt.release();
    else connection.abort(givenUp);
  }

  return { handler, giveUp };
}
