/** Reads the events of a watch, one JSON text a line, until it ends or falls silent. */
import { isMap } from '#foundation';
import type { KubernetesApi } from '../api/client.ts';
import { ApiFailure } from '../api/failure.ts';

/** Twice the most that the API server takes for an object by default, for each of its characters may be escaped. */
const lineCharactersMax = 16 * 1024 * 1024;

export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  readonly object: unknown;
}

export interface WatchOptions {
  readonly path: string;
  /** Called when the server has accepted the watch. */
  readonly onOpen: () => void;
  readonly onEvent: (event: WatchEvent) => void;
  /** A watch without a byte for this long counts as stalled. */
  readonly silenceMs: number;
}

/**
 * Resolves to why it ended: `ended` if its connection did, or `silent`. Rejects with an ApiFailure for a response or an
 * event that is an error, and with what `onEvent` throws.
 */
export async function readWatch(
  api: KubernetesApi,
  { path, onOpen, onEvent, silenceMs }: WatchOptions,
): Promise<'ended' | 'silent'> {
  const stream = await api.open(path);
  let isSilent = false;
  const timer = setTimeout(() => {
    isSilent = true;
    stream.destroy();
  }, silenceMs);
  onOpen();
  const onText = createLineReader((line) => onEvent(parseEvent(line)));
  try {
    for await (const text of stream.setEncoding('utf8')) {
      timer.refresh();
      onText(text);
    }
  } catch (error) {
    if (!isSilent && error !== stream.errored) throw error;
  } finally {
    clearTimeout(timer);
    stream.destroy();
  }
  return isSilent ? 'silent' : 'ended';
}

/** Returns a function that takes a text in pieces and calls `onLine` for each line of it. */
function createLineReader(onLine: (line: string) => void): (text: string) => void {
  const pieces: string[] = [];
  let characters = 0;
  return (text) => {
    const [first = '', ...rest] = text.split('\n');
    pieces.push(first);
    characters += first.length;
    for (const next of rest) {
      onLine(pieces.splice(0).join(''));
      pieces.push(next);
      characters = next.length;
    }
    if (characters > lineCharactersMax) throw new Error('an event of a watch is too large');
  };
}

/** Throws an ApiFailure for an error event. */
function parseEvent(line: string): WatchEvent {
  const { type, object } = JSON.parse(line) as { readonly type: string; readonly object: unknown };
  if (type === 'ERROR') throw new ApiFailure(isMap(object) ? Number(object['code']) : 0, object);
  return { type: type as WatchEvent['type'], object };
}
