/** What a call of gRPC has besides an HTTP request: a deadline for the whole of it, and a status in every response. */
import type { IncomingMessage } from 'node:http';
import type { Mapping } from '#config';
import { delayMsMax } from '#foundation';
import { formatGrpcTimeout, grpcKindOf, parseGrpcTimeout } from '#http';
import { withoutNames } from '../headers.ts';

export interface GrpcCall {
  /** Milliseconds for the whole call, with its attempts and its response. Undefined without a limit. */
  readonly timeoutMs: number | undefined;
  /** True if the client sent the limit. A service that exceeds it may be healthy. */
  readonly isClientsLimit: boolean;
  /** When the call began, by the clock of the calls. */
  readonly startedAtMs: number;
}

/** Other requests to a mapping for gRPC are forwarded as they are. */
export function isGrpcCall({ grpc }: Pick<Mapping, 'grpc'>, req: IncomingMessage): boolean {
  return grpc && grpcKindOf(req) !== undefined;
}

/** `timeoutMs` is the limit of the mapping, where 0 is none. A `grpc-timeout` that cannot be parsed sets no limit. */
export function grpcCallOf({ headers }: IncomingMessage, timeoutMs: number | undefined, startedAtMs: number): GrpcCall {
  const own = timeoutMs || Number.POSITIVE_INFINITY;
  const ofClient = parseGrpcTimeout(String(headers['grpc-timeout'])) ?? Number.POSITIVE_INFINITY;
  const limit = Math.min(own, ofClient);
  return {
    timeoutMs: limit === Number.POSITIVE_INFINITY ? undefined : Math.min(limit, delayMsMax),
    isClientsLimit: ofClient < own,
    startedAtMs,
  };
}

/** Returns the milliseconds that are left. Infinite without a limit. */
export function timeLeftMs({ timeoutMs, startedAtMs }: GrpcCall, nowMs: number): number {
  return timeoutMs === undefined ? Number.POSITIVE_INFINITY : timeoutMs - (nowMs - startedAtMs);
}

/** Headers of one hop: each attempt gets its own, with the time that is left. */
const ofHop: ReadonlySet<string> = new Set(['te', 'grpc-timeout']);

/** Returns the headers for the service: each value on its own, and without the headers of each attempt. */
export function callHeaders(call: GrpcCall, headers: string[], req: IncomingMessage): string[] {
  const kept = call.timeoutMs === undefined ? headers : withoutNames(headers, ofHop);
  return kept.flatMap((value, index) => (index % 2 === 0 ? [] : linesOf(kept[index - 1] ?? '', value, req)));
}

/**
 * Node joins the values of a repeated header, but services may decode a binary one only if it stands alone. Values that a
 * stage has changed stay as they are.
 */
function linesOf(name: string, value: string, { headersDistinct }: IncomingMessage): readonly string[] {
  const values = headersDistinct[name];
  if (values === undefined || values.length < 2 || values.join(', ') !== value) return [name, value];
  return values.flatMap((one) => [name, one]);
}

/** Returns the headers that an attempt adds. `te` shows a service that the gateway forwards trailers. */
export function hopHeaders(call: GrpcCall, nowMs: number): readonly string[] {
  return call.timeoutMs === undefined
    ? teTrailers
    : [...teTrailers, 'grpc-timeout', formatGrpcTimeout(timeLeftMs(call, nowMs))];
}

const teTrailers: readonly string[] = ['te', 'trailers'];
