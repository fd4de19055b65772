/** The traffic counts of one route: totals since the start, and the last five minutes in slots with quantiles. */
import { grpcStatus } from '#http';
import { createUpstreamCounts, type UpstreamCounts } from '#proxy';

/** The upper bounds of the histogram's buckets, in milliseconds. One more bucket counts slower requests. */
export const durationBoundsMs: readonly number[] = Object.freeze([
  0.5, 1, 2, 3, 5, 7.5, 10, 15, 25, 50, 75, 100, 150, 250, 500, 750, 1_000, 2_500, 5_000, 10_000, 30_000,
]);

/** The outcome of a request. */
export interface Outcome {
  /** 499 when the client disconnected or the response was aborted. */
  readonly status: number;
  /** Undefined unless it was a gRPC call. */
  readonly grpcStatus?: number | undefined;
  readonly durationMs: number;
  /** The stage that rejected the request. Undefined when it reached its service or failed otherwise. */
  readonly refusedBy: 'address' | 'auth' | 'limit' | undefined;
}

export interface Figures {
  requests: number;
  /** Responses with a status of 500 or above. */
  errors: number;
  refusedByAddress: number;
  refusedByAuth: number;
  refusedByLimit: number;
}

export type StatusClass = 1 | 2 | 3 | 4 | 5;

export interface Totals extends Figures {
  /** By the first digit of the status, 1 to 5. Excludes abandoned requests. */
  readonly byClass: Record<StatusClass, number>;
  /** Requests whose client disconnected or whose response was aborted. */
  abandoned: number;
  /** The gRPC calls by status, and at the end those with a number that is no status. Undefined without a call. */
  byGrpcStatus: Float64Array | undefined;
  durationMsSum: number;
  /** One bucket for each of `durationBoundsMs`, and one more. Not cumulative. */
  readonly durations: Float64Array;
}

export interface RecentTraffic {
  readonly slotMs: number;
  /** Oldest first. The last slot is still in progress. */
  readonly slots: readonly Readonly<Figures>[];
  /** Over all slots, interpolated within a bucket. Undefined without requests. */
  readonly p50Ms: number | undefined;
  readonly p99Ms: number | undefined;
}

export interface RouteTraffic {
  readonly name: string;
  /** Requests that have not ended. */
  inFlight: number;
  /** Undefined until the first request has ended, so that an idle route does not take 10 KB of memory. */
  totals: Totals | undefined;
  /** Counts of the calls to a service over HTTP. */
  readonly upstream: UpstreamCounts;
  readonly recent: (nowMs: number) => RecentTraffic;
  readonly count: (outcome: Outcome, nowMs: number) => void;
}

/** The statuses of gRPC are numbered from 0. */
const grpcStatusCount = Object.keys(grpcStatus).length;
const slotMs = 5_000;
const slotCount = 60;
const bucketCount = durationBoundsMs.length + 1;

interface Slots {
  readonly all: readonly Slot[];
  /** The buckets of all slots in one array, because an array for each slot would be mostly overhead. */
  readonly durations: Uint32Array;
}

interface Slot extends Figures {
  /** Identifies the time span that the slot counts: the clock divided by `slotMs`. */
  number: number;
  /** The index of the slot's first bucket in `Slots.durations`. */
  readonly firstBucket: number;
}

/** All times are monotonic milliseconds. */
export function createRouteTraffic(name: string): RouteTraffic {
  let slots: Slots | undefined;
  const traffic: RouteTraffic = {
    name,
    inFlight: 0,
    totals: undefined,
    upstream: createUpstreamCounts(),
    recent: (nowMs) => recentOf(slots, Math.floor(nowMs / slotMs)),
    count(outcome, nowMs) {
      traffic.totals ??= emptyTotals();
      slots ??= emptySlots();
      const slot = slotAt(slots, Math.floor(nowMs / slotMs));
      const bucket = bucketOf(outcome.durationMs);
      add(traffic.totals, outcome);
      addToTotals(traffic.totals, outcome, bucket);
      add(slot, outcome);
      increase(slots.durations, slot.firstBucket + bucket, 1);
    },
  };
  return traffic;
}

function add(figures: Figures, { status, refusedBy }: Outcome): void {
  figures.requests += 1;
  if (status >= 500) figures.errors += 1;
  if (refusedBy === 'address') figures.refusedByAddress += 1;
  else if (refusedBy === 'auth') figures.refusedByAuth += 1;
  else if (refusedBy === 'limit') figures.refusedByLimit += 1;
}

function addToTotals(totals: Totals, { status, grpcStatus, durationMs }: Outcome, bucket: number): void {
  if (grpcStatus !== undefined) {
    totals.byGrpcStatus ??= new Float64Array(grpcStatusCount + 1);
    increase(totals.byGrpcStatus, Math.min(grpcStatus, grpcStatusCount), 1);
  }
  totals.durationMsSum += durationMs;
  increase(totals.durations, bucket, 1);
  if (status === 499) totals.abandoned += 1;
  else totals.byClass[classOf(status)] += 1;
}

/** Counts a status of 600 or above as a server error (RFC 9110 section 15). */
function classOf(status: number): StatusClass {
  return Math.min(Math.floor(status / 100), 5) as StatusClass;
}

function increase(durations: Float64Array | Uint32Array, bucket: number, by: number): void {
  durations[bucket] = (durations[bucket] ?? 0) + by;
}

function bucketOf(durationMs: number): number {
  let bucket = 0;
  while (bucket < durationBoundsMs.length && durationMs > (durationBoundsMs[bucket] as number)) bucket += 1;
  return bucket;
}

/** Returns the slot for a number, after clearing it if it still counts an earlier time span. */
function slotAt({ all, durations }: Slots, number: number): Slot {
  const slot = all[number % slotCount] as Slot;
  if (slot.number !== number) {
    Object.assign(slot, emptyFigures(), { number });
    durations.fill(0, slot.firstBucket, slot.firstBucket + bucketCount);
  }
  return slot;
}

function recentOf(slots: Slots | undefined, current: number): RecentTraffic {
  const recent = slots?.all.filter(({ number }) => number > current - slotCount && number <= current) ?? [];
  const byNumber = new Map(recent.map((slot) => [slot.number, slot]));
  const durations = new Float64Array(bucketCount);
  for (const { firstBucket } of recent)
    for (let bucket = 0; bucket < bucketCount; bucket += 1)
      increase(durations, bucket, slots?.durations[firstBucket + bucket] ?? 0);
  return {
    slotMs,
    slots: Array.from({ length: slotCount }, (_, index) => figuresOf(byNumber.get(current - slotCount + 1 + index))),
    p50Ms: quantileMs(durations, 0.5),
    p99Ms: quantileMs(durations, 0.99),
  };
}

function figuresOf(slot: Slot | undefined): Figures {
  const { requests, errors, refusedByAddress, refusedByAuth, refusedByLimit } = slot ?? emptyFigures();
  return { requests, errors, refusedByAddress, refusedByAuth, refusedByLimit };
}

/**
 * Computes a quantile like Prometheus does: requests are assumed to be evenly distributed within a bucket, and the last
 * bucket, which has no upper bound, counts as its lower bound.
 */
function quantileMs(durations: Float64Array, share: number): number | undefined {
  const total = durations.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  const rank = share * total;
  let below = 0;
  let bucket = 0;
  while (bucket < durationBoundsMs.length && below + (durations[bucket] as number) < rank) {
    below += durations[bucket] as number;
    bucket += 1;
  }
  const from = bucket === 0 ? 0 : (durationBoundsMs[bucket - 1] as number);
  const to = durationBoundsMs[bucket];
  const count = durations[bucket] as number;
  return to === undefined || count === 0 ? from : from + ((to - from) * (rank - below)) / count;
}

function emptyFigures(): Figures {
  return { requests: 0, errors: 0, refusedByAddress: 0, refusedByAuth: 0, refusedByLimit: 0 };
}

function emptySlots(): Slots {
  const all = Array.from({ length: slotCount }, (_, index) => emptySlot(index * bucketCount));
  return { all, durations: new Uint32Array(slotCount * bucketCount) };
}

/** Sets every field in one literal, which V8 stores more compactly than a spread object. */
function emptySlot(firstBucket: number): Slot {
  return { requests: 0, errors: 0, refusedByAddress: 0, refusedByAuth: 0, refusedByLimit: 0, number: -1, firstBucket };
}

function emptyTotals(): Totals {
  return {
    ...emptyFigures(),
    byClass: { 1: 0, 2: 0, 3: 0, 4: 0, 5: 0 },
    abandoned: 0,
    byGrpcStatus: undefined,
    durationMsSum: 0,
    durations: new Float64Array(bucketCount),
  };
}
