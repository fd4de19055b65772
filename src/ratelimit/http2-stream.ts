/** One request on an HTTP/2 connection, and what has arrived of its answer. */
import type { Field } from './hpack-static-table.ts';

/** `complete`: the answer is there. `reset`: the peer gave the stream up. `lost`: the connection is gone. */
export type StreamEnd =
  | { readonly kind: 'complete' }
  | { readonly kind: 'reset'; readonly code: number }
  | { readonly kind: 'lost'; readonly error: Error };

export interface StreamListener {
  /** May cancel the stream. */
  onData(chunk: Buffer): void;
  /** Called once, unless the stream is cancelled; nothing is called after it. */
  onEnd(end: StreamEnd, stream: Stream): void;
}

export interface Stream {
  /** 0 as long as it waits for its turn. */
  id: number;
  readonly body: Buffer;
  sentBytes: number;
  /** What the peer still takes of the body. */
  window: number;
  headers: readonly Field[] | undefined;
  trailers: readonly Field[] | undefined;
  readonly listener: StreamListener;
}

export function createStream(body: Buffer, listener: StreamListener): Stream {
  return { id: 0, body, sentBytes: 0, window: 0, headers: undefined, trailers: undefined, listener };
}

export function fieldValue(fields: readonly Field[] | undefined, name: string): string | undefined {
  if (fields === undefined) return undefined;
  for (const field of fields) if (field.name === name) return field.value;
  return undefined;
}
