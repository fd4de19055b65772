/** The endpoint `/gateway/v0/diag/events`: the diagnostics as server-sent events, with bounded streams and CPU time. */

import type { ServerResponse } from 'node:http';
import type { Context } from 'koa';
import { equalPart } from '#foundation';
import type { InternalRoute } from '#gateway';
import { acceptRead, createRepresentations, type Problem, problem, requestContext } from '#http';
import { parseFilter, type ReadDiagnostics, type RowFilter } from './snapshot.ts';

export interface DiagnosticsEvents {
  readonly endpoint: InternalRoute;
  /** Ends the streams immediately, so that a shutdown does not wait for them. */
  readonly close: () => void;
}

const prefix = '/gateway/v0/diag/events';
const contentType = 'text/event-stream';

/**
 * Each event contains the diagnostics as JSON, with the filter of the query. Response headers keep proxies from
 * buffering.
 */
export function createDiagnosticsEvents(
  readDiagnostics: ReadDiagnostics,
  options: Omit<EventStreamsOptions, 'read'>,
): DiagnosticsEvents {
  const representations = createRepresentations([{ type: contentType, contentType, format: String }]);
  const streams = createEventStreams({
    ...options,
    read: async (filter) => JSON.stringify(await readDiagnostics(filter)),
  });
  return {
    endpoint: {
      name: 'diagnostics-events',
      prefix,
      forAdmins: true,
      isLongLived: true,
      async run(ctx) {
        if (!acceptRead(ctx, prefix)) return;
        const filter = parseFilter(ctx.search);
        representations.choose(ctx.req.headers.accept);
        ctx.set({ 'Cache-Control': 'no-store, no-transform', 'X-Accel-Buffering': 'no' });
        ctx.vary('Accept');
        ctx.set('Content-Type', contentType);
        ctx.status = 200;
        if (ctx.method === 'HEAD') return;
        const opened = await streams.open(filter, ctx.res, clientOf(ctx));
        if (opened !== 'open') throw refusal(opened);
        // Koa would wait for the end of the body, and would report an error when the client disconnects.
        ctx.respond = false;
      },
    },
    close: streams.close,
  };
}

/** Identifies the client by its user name, or without one by its address. The first word keeps the two apart. */
function clientOf(ctx: Context): string {
  const { user, addresses } = requestContext(ctx);
  return user === undefined ? `address ${addresses.client(ctx.req)}` : `user ${user}`;
}

const reasons: Readonly<Record<RefusalReason, string>> = {
  all: 'All event streams are in use, or the server is stopping.',
  client: 'This user, or this address if there is no user, has reached the maximum number of event streams.',
};

/** A stream may last for a quarter of an hour, so trying again sooner would seldom help. */
const retryAfterSeconds = 60;

function refusal(reason: RefusalReason): Problem {
  const detail = `${reasons[reason]} The diagnostics are still available without events.`;
  return problem('not-ready', { detail, headers: { 'Retry-After': String(retryAfterSeconds) } });
}

export interface EventStreamsOptions {
  /** Resolves to the data of an event as one line of text. */
  readonly read: (filter: RowFilter) => Promise<string>;
  /** When the returned number changes, streams end after the next event, so that clients must authenticate again. */
  readonly generation: () => number;
  /** The time between two events, in milliseconds. Longer when readings are slow. @default 2_000 */
  readonly intervalMs?: number;
  /** How long a stream lasts before the client must authenticate again, in milliseconds. @default 900_000 */
  readonly lifeMs?: number;
  /** The number of threads with such streams. Each has an equal part of the two bounds below. @default 1 */
  readonly threads?: number | undefined;
  /** The maximum number of open streams. @default 16 */
  readonly streamsMax?: number;
  /** The maximum number of open streams for one client. @default 4 */
  readonly streamsPerClientMax?: number;
  /** Returns milliseconds from any fixed point. @default performance.now */
  readonly clock?: () => number;
}

export interface EventStreams {
  /**
   * Sends the first event immediately, so the headers must be set. `client` identifies the subscriber. Resolves to `all`
   * if no more streams can be opened, and to `client` if this client cannot open more.
   */
  readonly open: (filter: RowFilter, res: ServerResponse, client: string) => Promise<'open' | RefusalReason>;
  /** Ends all streams immediately, and rejects new ones. */
  readonly close: () => void;
}

type RefusalReason = 'all' | 'client';

interface Subscriber {
  readonly filter: RowFilter;
  readonly res: ServerResponse;
  readonly client: string;
  readonly generation: number;
  readonly openedAtMs: number;
  /** True when the last event has been sent. A slow reader misses events, so that at most one is buffered for it. */
  isReady: boolean;
}

export function createEventStreams(options: EventStreamsOptions): EventStreams {
  const { read, generation, intervalMs = 2_000, lifeMs = 900_000, clock = () => performance.now() } = options;
  const { streamsMax = 16, streamsPerClientMax = 4, threads = 1 } = options;
  const ownMax = equalPart(streamsMax, threads);
  const ownPerClientMax = equalPart(streamsPerClientMax, threads);
  const subscribers = new Set<Subscriber>();
  let timer: NodeJS.Timeout | undefined;
  let events = 0;
  let isClosed = false;

  async function eventOf(filter: RowFilter): Promise<Buffer> {
    const data = await read(filter);
    events += 1;
    return Buffer.from(`id: ${events}\nretry: ${intervalMs}\nevent: diagnostics\ndata: ${data}\n\n`);
  }

  function refusalReason(client: string): RefusalReason | undefined {
    if (isClosed || subscribers.size >= ownMax) return 'all';
    const own = [...subscribers].filter((subscriber) => subscriber.client === client);
    return own.length >= ownPerClientMax ? 'client' : undefined;
  }

  function subscribe(filter: RowFilter, res: ServerResponse, client: string): Subscriber {
    const openedAtMs = clock();
    const subscriber: Subscriber = { filter, res, client, generation: generation(), openedAtMs, isReady: true };
    subscribers.add(subscriber);
    res.on('drain', () => {
      subscriber.isReady = true;
    });
    res.once('close', () => unsubscribe(subscriber));
    if (timer === undefined) later(sendRound, intervalMs);
    return subscriber;
  }

  function unsubscribe(subscriber: Subscriber): void {
    subscribers.delete(subscriber);
    if (subscribers.size > 0) return;
    clearTimeout(timer);
    timer = undefined;
  }

  function later(next: () => void, delayMs: number): void {
    if (subscribers.size > 0) timer = setTimeout(next, delayMs).unref();
  }

  /**
   * Sends an event to all subscribers. Each filter needs a separate reading, with a pause for other work in between.
   */
  function sendRound(): void {
    const startedAtMs = clock();
    const groups = groupsOf(subscribers).values();
    async function next(): Promise<void> {
      const round = timer;
      const { done, value: group } = groups.next();
      if (done) return later(sendRound, Math.max(0, startedAtMs + intervalMs - clock()));
      const tookMs = await sendAll(group.filter((subscriber) => subscribers.has(subscriber)));
      // Otherwise the last stream was closed during the reading, and another one may have begun new rounds.
      if (timer === round) later(next, tookMs * pausesPerReading);
    }
    void next();
  }

  /** Sends one reading to subscribers with the same filter. Resolves to how many milliseconds it took. */
  async function sendAll(group: readonly Subscriber[]): Promise<number> {
    const startedAtMs = clock();
    const expired = new Set(group.filter(hasExpired));
    const [reader] = group.filter(({ isReady, res }) => isReady && !res.writableEnded);
    // A failure is not logged here: the page then polls, and that request logs the error and responds with it.
    const event = reader && (await eventOf(reader.filter).catch(() => undefined));
    const tookMs = clock() - startedAtMs;
    for (const subscriber of group) {
      sendOrDestroy(subscriber, event, expired.has(subscriber));
      if (expired.has(subscriber)) subscriber.res.end();
    }
    return tookMs;
  }

  /**
   * Destroys an ended stream whose client has not read the last event, and a stream without an event because its reading
   * failed. Does not wait for a slow reader at the end.
   */
  function sendOrDestroy(subscriber: Subscriber, event: Buffer | undefined, isLast: boolean): void {
    const { res, isReady } = subscriber;
    if (res.destroyed) return;
    if (res.writableEnded || (isLast && !isReady) || (isReady && event === undefined)) res.destroy();
    else if (isReady && event !== undefined) write(subscriber, event);
  }

  function hasExpired(subscriber: Subscriber): boolean {
    return clock() - subscriber.openedAtMs >= lifeMs || subscriber.generation !== generation();
  }

  return Object.freeze({
    async open(filter: RowFilter, res: ServerResponse, client: string) {
      const event = refusalReason(client) === undefined ? await eventOf(filter) : undefined;
      // Asks again, because other streams may have been opened during the reading.
      const reason = refusalReason(client);
      if (reason !== undefined) return reason;
      if (event !== undefined && !res.destroyed) write(subscribe(filter, res, client), event);
      return 'open';
    },
    close() {
      isClosed = true;
      for (const subscriber of subscribers) end(subscriber);
    },
  });
}

/**
 * The length of the pause after a reading, as a multiple of the reading: readings use at most a quarter of the CPU
 * time.
 */
const pausesPerReading = 3;

/** Groups the subscribers by filter, because those with the same filter share a reading. */
function groupsOf(subscribers: Iterable<Subscriber>): readonly (readonly Subscriber[])[] {
  const groups = new Map<string, Subscriber[]>();
  for (const subscriber of subscribers) {
    const key = JSON.stringify(subscriber.filter);
    groups.set(key, [...(groups.get(key) ?? []), subscriber]);
  }
  return [...groups.values()];
}

function write(subscriber: Subscriber, event: Buffer): void {
  subscriber.isReady = subscriber.res.write(event);
}

/** Disconnects a client that has not read its last event, instead of waiting for it. */
function end({ res, isReady }: Subscriber): void {
  if (isReady) res.end();
  else res.destroy();
}
