/** Server-sent events for all who look on: one timer, one reading a round for those who ask for the same, and none without them. */
import type { ServerResponse } from 'node:http';
import type { Selection } from './selection.ts';

export interface EventStreamsOptions {
  /** What is told, as one line of text. */
  readonly read: (selection: Selection) => string;
  /** When it has changed, streams end with the next event, so that who may look on is asked anew. */
  readonly generation: () => number;
  /** Between two events, in milliseconds; longer where readings take long. @default 2_000 */
  readonly intervalMs?: number;
  /** How long one may look on before credentials are asked for again, in milliseconds. @default 900_000 */
  readonly lifeMs?: number;
  /** At the same time. @default 16 */
  readonly streamsMax?: number;
  /** Of these, for one client. @default 4 */
  readonly streamsPerClientMax?: number;
  /** Milliseconds from any fixed point. @default performance.now */
  readonly clock?: () => number;
}

export interface EventStreams {
  /**
   * Begins with an event, for which the headers must be ready. `client`: who looks on. Otherwise whose streams are as many
   * as there may be: `everyone`, also from when they are closed, or this `client`.
   */
  readonly open: (selection: Selection, res: ServerResponse, client: string) => 'open' | FullFor;
  /** Ends all of them at once, and takes no more on. */
  readonly close: () => void;
}

export type FullFor = 'everyone' | 'client';

interface Listener {
  readonly selection: Selection;
  readonly res: ServerResponse;
  readonly client: string;
  readonly generation: number;
  readonly openedAtMs: number;
  /** What it was sent is on its way. A reader that is slow misses rounds: no more than one event ever waits for it. */
  isReady: boolean;
}

export function createEventStreams(options: EventStreamsOptions): EventStreams {
  const { read, generation, intervalMs = 2_000, lifeMs = 900_000, clock = now } = options;
  const { streamsMax = 16, streamsPerClientMax = 4 } = options;
  const listeners = new Set<Listener>();
  let timer: NodeJS.Timeout | undefined;
  let events = 0;
  let isClosed = false;

  function eventOf(selection: Selection): Buffer {
    events += 1;
    return Buffer.from(`id: ${events}\nretry: ${intervalMs}\nevent: diagnostics\ndata: ${read(selection)}\n\n`);
  }

  function fullFor(client: string): FullFor | undefined {
    if (isClosed || listeners.size >= streamsMax) return 'everyone';
    const own = [...listeners].filter((listener) => listener.client === client);
    return own.length >= streamsPerClientMax ? 'client' : undefined;
  }

  function listen(selection: Selection, res: ServerResponse, client: string): Listener {
    const [openedAtMs, met] = [clock(), generation()];
    const listener: Listener = { selection, res, client, generation: met, openedAtMs, isReady: true };
    listeners.add(listener);
    res.on('drain', () => {
      listener.isReady = true;
    });
    res.once('close', () => leave(listener));
    if (timer === undefined) later(begin, intervalMs);
    return listener;
  }

  function leave(listener: Listener): void {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearTimeout(timer);
    timer = undefined;
  }

  function later(next: () => void, delayMs: number): void {
    if (listeners.size > 0) timer = setTimeout(next, delayMs).unref();
  }

  /** Between two readings requests have their turn: there may be one for each stream, of 10,000 routes each. */
  function begin(): void {
    const startedAtMs = clock();
    const groups = groupsOf(listeners).values();
    function next(): void {
      const { done, value: group } = groups.next();
      if (done) later(begin, Math.max(0, startedAtMs + intervalMs - clock()));
      else later(next, tellAll(group.filter((listener) => listeners.has(listener))) * restsPerReading);
    }
    next();
  }

  /** How many milliseconds it took. */
  function tellAll(group: readonly Listener[]): number {
    const startedAtMs = clock();
    let event: Buffer | undefined;
    const read = ({ selection }: Listener) => {
      event ??= eventOf(selection);
      return event;
    };
    for (const listener of group) turn(listener, read);
    return clock() - startedAtMs;
  }

  function turn(listener: Listener, read: (listener: Listener) => Buffer): void {
    const { res, isReady } = listener;
    const isLast = isOver(listener);
    // One that has ended and is still here does not take the rest.
    if (res.writableEnded || (isLast && !isReady)) res.destroy();
    else if (isReady) tell(listener, read);
    if (isLast) res.end();
  }

  function isOver({ openedAtMs, generation: met }: Listener): boolean {
    return clock() - openedAtMs >= lifeMs || met !== generation();
  }

  return Object.freeze({
    open(selection: Selection, res: ServerResponse, client: string) {
      const full = fullFor(client);
      if (full !== undefined) return full;
      const event = eventOf(selection);
      write(listen(selection, res, client), event);
      return 'open';
    },
    close() {
      isClosed = true;
      for (const listener of listeners) end(listener);
    },
  });
}

/** How much longer than a reading the rest after it is: streams take a quarter of the process at most. */
const restsPerReading = 3;

/** Those who ask for the same, together. */
function groupsOf(listeners: Iterable<Listener>): readonly (readonly Listener[])[] {
  const groups = new Map<string, Listener[]>();
  for (const listener of listeners) {
    const key = JSON.stringify(listener.selection);
    groups.set(key, [...(groups.get(key) ?? []), listener]);
  }
  return [...groups.values()];
}

function tell(listener: Listener, read: (listener: Listener) => Buffer): void {
  try {
    write(listener, read(listener));
  } catch {
    // What cannot be read now is told to whoever asks for it without the stream, and to the log.
    listener.res.destroy();
  }
}

function write(listener: Listener, event: Buffer): void {
  listener.isReady = listener.res.write(event);
}

/** Who has not taken what was sent is not waited for. */
function end({ res, isReady }: Listener): void {
  if (isReady) res.end();
  else res.destroy();
}

function now(): number {
  return performance.now();
}
