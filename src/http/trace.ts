/** `traceparent` and `tracestate` (W3C Trace Context): read, written and bounded, and new ids. */
import { randomFillSync } from 'node:crypto';

export interface TraceParent {
  /** 32 hexadecimal digits in lower case, not all zero. */
  readonly traceId: string;
  /** 16 hexadecimal digits in lower case, not all zero: the sender's span. */
  readonly spanId: string;
  /** 1: sampled, 2: the trace id is random. */
  readonly flags: number;
}

/** `spanId` is ours; other servers get it as their parent. */
export interface Trace extends TraceParent {
  /** The `tracestate` to pass on; undefined: none. */
  readonly state: string | undefined;
  /** Reports a call to another server, with its method, to the tracer; undefined where nothing traces. */
  readonly startCall: ((method: string) => TracedCall) | undefined;
}

/** A call to another server; one of `answered` and `failed` ends it. */
export interface TracedCall {
  /** The trace that the other server gets, in place of the request's. */
  readonly trace: Trace;
  /** `origin`: scheme, host and port of the server that answered. */
  readonly answered: (status: number, origin: string) => void;
  readonly failed: (cause: unknown) => void;
}

/** The headers that pass the trace on to another server, as names and values in turn. */
export function traceHeaders(trace: Trace): string[] {
  const list = ['traceparent', formatTraceparent(trace)];
  if (trace.state !== undefined) list.push('tracestate', trace.state);
  return list;
}

const fields = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:$|-)/;

/** The whole length of version 00; later versions may add fields, which we ignore (section 4.3). */
const lengthOfFirstVersion = 55;

/** Undefined flags must not be passed on (section 3.2.2.5). */
const knownFlags = 3;

/** Undefined for an unreadable header. A header that came twice is unreadable, since Node joins the two with a comma. */
export function parseTraceparent(header: string | readonly string[] | undefined): TraceParent | undefined {
  if (typeof header !== 'string') return undefined;
  const [, version, traceId = '', spanId = '', flags = ''] = fields.exec(header) ?? [];
  if (version === undefined || (version === '00' && header.length !== lengthOfFirstVersion)) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) & knownFlags };
}

/** In version 00. */
export function formatTraceparent({ traceId, spanId, flags }: TraceParent): string {
  return `00-${traceId}-${spanId}-0${flags & knownFlags}`;
}

const membersMax = 32;
const lengthMax = 512;

/** When the whole is too long, members longer than this go first (section 3.3.1.5). */
const lengthOfLongMember = 128;

const memberPattern = /^[\da-z][\da-z_*/@-]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/** As much of `tracestate`, all its lines together, as may be passed on; undefined: none, or a member is malformed. */
export function boundTracestate(header: string | readonly string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  const members = String(header)
    .split(',')
    .map((member) => member.trim())
    .filter((member) => member !== '');
  if (!members.every((member) => memberPattern.test(member))) return undefined;
  return withinLength(members.slice(0, membersMax)).join(',') || undefined;
}

function withinLength(members: readonly string[]): readonly string[] {
  if (lengthOf(members) <= lengthMax) return members;
  const kept = members.filter(({ length }) => length <= lengthOfLongMember);
  while (lengthOf(kept) > lengthMax) kept.pop();
  return kept;
}

function lengthOf(members: readonly string[]): number {
  return members.reduce((sum, { length }) => sum + length + 1, -1);
}

/** Makes new ids, unpredictable ones. */
export interface TraceIds {
  /** 32 hexadecimal digits in lower case, never all zero. */
  readonly traceId: () => string;
  /** 16 of them. */
  readonly spanId: () => string;
}

/** Enough for 170 requests that each begin a trace. */
const poolBytes = 4096;

/**
 * `fill` overwrites the whole buffer with random bytes. They are fetched and written as text many at a time, which makes
 * an id five times cheaper; the pool is allocated at the first id.
 */
export function createTraceIds(fill: (bytes: Buffer) => unknown = randomFillSync): TraceIds {
  let pool: Buffer | undefined;
  let digits = '';
  let next = 0;

  function take(length: number): string {
    if (next + length > digits.length) {
      pool ??= Buffer.allocUnsafeSlow(poolBytes);
      fill(pool);
      digits = pool.toString('hex');
      next = 0;
    }
    next += length;
    return digits.slice(next - length, next);
  }

  /** An id of zeros means "none" (section 3.2.2.3). */
  function takeId(length: number): string {
    let id = take(length);
    while (/^0+$/.test(id)) id = take(length);
    return id;
  }

  return Object.freeze({ traceId: () => takeId(32), spanId: () => takeId(16) });
}
