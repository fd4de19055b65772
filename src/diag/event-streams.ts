/** Server-sent events for all who look on: one timer, one reading a tick for those who ask for the same, and none without them. */
import type { ServerResponse } from 'node:http';
import type { Selection } from './selection.ts';

export interface EventStreamsOptions {
  /** What is told, as one line of text. */
  readonly read: (selection: Selection) => string;
  /** When it has changed, streams end with the next event, so that who may look on is asked anew. */
  readonly generation: () => number;
  /** Between two events, in milliseconds. @default 2_000 */
  readonly intervalMs?: number;
  /** How long one may look on before credentials are asked for again, in milliseconds. @default 900_000 */
  readonly lifeMs?: number;
  /** At the same time. @default 16 */
  readonly streamsMax?: number;
}

export interface EventStreams {
  /** Begins with an event, for which the headers must be ready. False: there are as many as there may be. */
  readonly open: (selection: Selection, res: ServerResponse) => boolean;
  /** Ends all of them at once, and takes no more on. */
  readonly close: () => void;
}

interface Listener {
  readonly selection: Selection;
  readonly res: ServerResponse;
  readonly generation: number;
  readonly openedAtMs: number;
  /** What it was sent is on its way. A reader that is slow misses ticks: no more than one event ever waits for it. */
  isReady: boolean;
}

export function createEventStreams(options: EventStreamsOptions): EventStreams {
  const { read, generation, intervalMs = 2_000, lifeMs = 900_000, streamsMax = 16 } = options;
  const listeners = new Set<Listener>();
  let timer: NodeJS.Timeout | undefined;
  let events = 0;
  let isClosed = false;

  function eventOf(selection: Selection): Buffer {
    events += 1;
    return Buffer.from(`id: ${events}\nretry: ${intervalMs}\nevent: diagnostics\ndata: ${read(selection)}\n\n`);
  }

  function listen(selection: Selection, res: ServerResponse): Listener {
    const [openedAtMs, met] = [performance.now(), generation()];
    const listener: Listener = { selection, res, generation: met, openedAtMs, isReady: true };
    listeners.add(listener);
    res.on('drain', () => {
      listener.isReady = true;
    });
    res.once('close', () => leave(listener));
    timer ??= setInterval(tick, intervalMs).unref();
    return listener;
  }

  function leave(listener: Listener): void {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  function tick(): void {
    const made = new Map<string, Buffer>();
    for (const listener of listeners) turn(listener, made);
  }

  function turn(listener: Listener, made: Map<string, Buffer>): void {
    const { res, isReady } = listener;
    const isLast = isOver(listener);
    // One that has ended and is still here does not take the rest.
    if (res.writableEnded || (isLast && !isReady)) res.destroy();
    else if (isReady) tell(listener, made);
    if (isLast) res.end();
  }

  function tell(listener: Listener, made: Map<string, Buffer>): void {
    const { selection, res } = listener;
    const key = JSON.stringify(selection);
    try {
      const event = made.get(key) ?? eventOf(selection);
      made.set(key, event);
      write(listener, event);
    } catch {
      // What cannot be read now is told to whoever asks for it without the stream, and to the log.
      res.destroy();
    }
  }

  function isOver({ openedAtMs, generation: met }: Listener): boolean {
    return performance.now() - openedAtMs >= lifeMs || met !== generation();
  }

  return Object.freeze({
    open(selection: Selection, res: ServerResponse) {
      if (isClosed || listeners.size >= streamsMax) return false;
      const event = eventOf(selection);
      write(listen(selection, res), event);
      return true;
    },
    close() {
      isClosed = true;
      for (const listener of listeners) end(listener);
    },
  });
}

function write(listener: Listener, event: Buffer): void {
  listener.isReady = listener.res.write(event);
}

/** Who has not taken what was sent is not waited for. */
function end({ res, isReady }: Listener): void {
  if (isReady) res.end();
  else res.destroy();
}
