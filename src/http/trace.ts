/** W3C Trace Context: parses and formats `traceparent`, truncates `tracestate`, and generates ids. */
import { randomFillSync } from 'node:crypto';

export interface TraceParent {
  /** 32 hexadecimal digits in lower case, not all zero. */
  readonly traceId: string;
  /** 16 hexadecimal digits in lower case, not all zero: the sender's span. */
  readonly spanId: string;
  /** Bit flags: 1 means that the trace is sampled, 2 that its id is random. */
  readonly flags: number;
}

/** The trace of one request. `spanId` is our own span, which other servers receive as their parent. */
export interface Trace extends TraceParent {
  /** The `tracestate` to pass on. Undefined if there is none. */
  readonly state: string | undefined;
  /** Reports the start of a call to another server to the tracer. Undefined when tracing is off. */
  readonly startCall: ((method: string) => TracedCall) | undefined;
}

/** A call to another server. Call either `responded` or `failed` to end it. */
export interface TracedCall {
  /** The trace to send to the other server instead of the request's. */
  readonly trace: Trace;
  /** `origin` is the scheme, host and port of the server that responded. */
  readonly responded: (status: number, origin: string) => void;
  readonly failed: (cause: unknown) => void;
}

/** Adds the headers that propagate the trace to another server to a list of alternating names and values. */
export function addTraceHeaders(list: string[], trace: Trace): void {
  list.push('traceparent', formatTraceparent(trace));
  if (trace.state !== undefined) list.push('tracestate', trace.state);
}

const traceparentPattern = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:$|-)/;

/** The exact length of version 00. Later versions may add fields, which we ignore (section 4.3). */
const version00Length = 55;

/** Flags that the specification does not define must not be passed on (section 3.2.2.5). */
const knownFlags = 3;

/** Undefined for an invalid header, including a repeated one, which Node joins with a comma. */
export function parseTraceparent(header: string | readonly string[] | undefined): TraceParent | undefined {
  if (typeof header !== 'string') return undefined;
  const [, version, traceId = '', spanId = '', flags = ''] = traceparentPattern.exec(header) ?? [];
  if (version === undefined || (version === '00' && header.length !== version00Length)) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) & knownFlags };
}

/** Formats version 00. */
export function formatTraceparent({ traceId, spanId, flags }: TraceParent): string {
  return `00-${traceId}-${spanId}-0${flags & knownFlags}`;
}

const membersMax = 32;
const lengthMax = 512;

/** If the header is too long, members longer than this are removed first (section 3.3.1.5). */
const lengthOfLongMember = 128;

const memberPattern = /^[\da-z][\da-z_*/@-]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/** The part of `tracestate` that fits the bounds. Undefined if it is absent, empty, or has a malformed member. */
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

/** Generates unpredictable ids. */
export interface TraceIds {
  /** 32 hexadecimal digits in lower case, never all zero. */
  readonly traceId: () => string;
  /** 16 hexadecimal digits in lower case, never all zero. */
  readonly spanId: () => string;
}

/** Enough for 170 new traces, with 24 bytes each. */
const poolBytes = 4096;

/**
 * `fill` overwrites the whole buffer with random bytes, for many ids at a time. The pool is allocated for the first id.
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

  /** Skips an id that is all zeros, which is invalid (section 3.2.2.3). */
  function takeId(length: number): string {
    let id = take(length);
    while (/^0+$/.test(id)) id = take(length);
    return id;
  }

  return Object.freeze({ traceId: () => takeId(32), spanId: () => takeId(16) });
}
