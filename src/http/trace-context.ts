/** `traceparent` and `tracestate` (W3C Trace Context): text to plain data and back. Nothing that a client sends makes them throw. */

export interface TraceParent {
  /** 32 hexadecimal digits in lower case, not all zero. */
  readonly traceId: string;
  /** 16 hexadecimal digits in lower case, not all zero: who is speaking. */
  readonly spanId: string;
  /** 1: sampled, 2: the trace id is random. */
  readonly flags: number;
}

const fields = /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:$|-)/;

/** All that is known of a version 00; of later ones there may be more, which nobody here can read (section 4.3). */
const lengthOfFirstVersion = 55;

/** Flags that nobody has defined must not be passed on (section 3.2.2.5). */
const knownFlags = 3;

/** Undefined for what cannot be read: a header that came twice has a comma in it. */
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

/** Of members that are too many in all, those of more characters go first (section 3.3.1.5). */
const lengthOfLongMember = 128;

const member = /^[\da-z][\da-z_*/@-]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;

/** What may be passed on of all lines together; undefined: nothing, or one of its members cannot be read. */
export function boundTracestate(header: string | readonly string[] | undefined): string | undefined {
  if (header === undefined) return undefined;
  const members = String(header)
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
  if (!members.every((one) => member.test(one))) return undefined;
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
