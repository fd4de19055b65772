/** The protocol on the wire: both packages read and written here, and what tells them apart is a table. */
import { fileURLToPath } from 'node:url';
import { loadSync, type MethodDefinition, type PackageDefinition, type ServiceDefinition } from '@grpc/proto-loader';
import type { CurrentLimit, Decision, DescriptorStatus, RateLimitRequest, ResponseHeader } from './limiter.ts';
import { unitSeconds } from './windows.ts';
import { requestOf, type WireRequest, wireRequest } from './wire-request.ts';
import { units, wireUnits } from './wire-units.ts';

export type ProtocolName = 'v3' | 'lyft';

export interface Protocol {
  /** For example `pb.lyft.ratelimit.RateLimitService`. */
  readonly service: string;
  /** The `:path` of a call: `/<service>/ShouldRateLimit`. */
  readonly path: string;
  /** Everything that the package defines, for reflection. */
  readonly packageDefinition: PackageDefinition;
  /** The service in our own terms: its handler gets a `RateLimitRequest` and answers a `Decision`. */
  readonly definition: ServiceDefinition;
  encodeRequest(request: RateLimitRequest): Buffer;
  /** Throws for bytes that are no answer. */
  decodeDecision(bytes: Buffer): Decision;
}

/** The older package has the same messages with fewer fields, and a codec skips the fields that its package lacks. */
const packages = {
  v3: { file: 'envoy/service/ratelimit/v3/rls.proto', service: 'envoy.service.ratelimit.v3.RateLimitService' },
  lyft: { file: 'ratelimit.proto', service: 'pb.lyft.ratelimit.RateLimitService' },
} as const satisfies Record<ProtocolName, { readonly file: string; readonly service: string }>;

/** Reads the package's files; takes some milliseconds. */
export function loadProtocol(name: ProtocolName): Protocol {
  const { file, service } = packages[name];
  const packageDefinition = loadSync(file, {
    // The same two levels up from src/ratelimit and from dist/ratelimit.
    includeDirs: [fileURLToPath(new URL('../../proto', import.meta.url))],
    longs: Number,
    enums: String,
    defaults: true,
    arrays: true,
  });
  const method = methodOf(packageDefinition, service);
  return Object.freeze({
    service,
    path: method.path,
    packageDefinition,
    definition: { ShouldRateLimit: inOurTerms(method) },
    encodeRequest: (request: RateLimitRequest) => method.requestSerialize(wireRequest(request)),
    decodeDecision: (bytes: Buffer) => decisionOf(method.responseDeserialize(bytes) as WireResponse),
  });
}

function methodOf(packageDefinition: PackageDefinition, service: string): MethodDefinition<object, object> {
  const definition = packageDefinition[service];
  const method = definition === undefined || 'format' in definition ? undefined : definition['ShouldRateLimit'];
  if (method === undefined) throw new Error(`proto: no ${service}.ShouldRateLimit`);
  return method;
}

function inOurTerms(method: MethodDefinition<object, object>): MethodDefinition<object, object> {
  return {
    ...method,
    requestDeserialize: (bytes) => requestOf(method.requestDeserialize(bytes) as WireRequest),
    responseSerialize: (decision) => method.responseSerialize(wireResponse(decision as Decision)),
  };
}

type WireCode = 'UNKNOWN' | 'OK' | 'OVER_LIMIT';

/** What the codec makes of an answer's bytes; `name` and `durationUntilReset` are v3's. */
interface WireResponse {
  readonly overallCode: WireCode;
  readonly statuses: readonly WireStatus[];
  /** v3's. */
  readonly responseHeadersToAdd?: readonly WireHeader[];
}

interface WireHeader {
  readonly key: string;
  readonly value: string;
  readonly rawValue: Buffer;
}

interface WireStatus {
  readonly code: WireCode;
  readonly currentLimit: WireLimit | null;
  readonly limitRemaining: number;
  readonly durationUntilReset?: { readonly seconds: number; readonly nanos: number } | null;
}

interface WireLimit {
  readonly requestsPerUnit: number;
  readonly unit: string;
  readonly name?: string;
  readonly unitMultiplier?: { readonly value: number } | null;
}

function wireResponse({ overallCode, statuses, responseHeaders = [] }: Decision): object {
  const responseHeadersToAdd = responseHeaders.map(({ name, value }) => ({ key: name, value }));
  return { overallCode, statuses: statuses.map(wireStatus), responseHeadersToAdd };
}

function wireStatus({ code, currentLimit, limitRemaining, resetSeconds }: DescriptorStatus): object {
  return {
    code,
    currentLimit: currentLimit && wireLimit(currentLimit),
    limitRemaining,
    durationUntilReset: resetSeconds === undefined ? undefined : { seconds: resetSeconds },
  };
}

function wireLimit({ requestsPerUnit, unit, unitMultiplier = 1, name }: CurrentLimit): object {
  const wire = { requestsPerUnit, unit: wireUnits[unit], name };
  return unitMultiplier === 1 ? wire : { ...wire, unitMultiplier: { value: unitMultiplier } };
}

function decisionOf({ overallCode, statuses, responseHeadersToAdd = [] }: WireResponse): Decision {
  // An empty message is a valid one of this protocol, but it answers nothing.
  if (overallCode !== 'OK' && overallCode !== 'OVER_LIMIT') throw new Error(`overall_code is ${overallCode}`);
  const decision = { overallCode, statuses: statuses.map(statusOf) };
  if (responseHeadersToAdd.length === 0) return decision;
  return { ...decision, responseHeaders: responseHeadersToAdd.map(headerOf) };
}

/** Of the two values one is set; bytes are taken for Latin-1, as HTTP takes them. */
function headerOf({ key, value, rawValue }: WireHeader): ResponseHeader {
  return { name: key, value: value || rawValue.toString('latin1') };
}

function statusOf({ code, currentLimit, limitRemaining, durationUntilReset }: WireStatus): DescriptorStatus {
  return {
    code: code === 'OVER_LIMIT' ? 'OVER_LIMIT' : 'OK',
    currentLimit: limitOf(currentLimit),
    limitRemaining,
    resetSeconds: durationUntilReset ? durationUntilReset.seconds + Math.sign(durationUntilReset.nanos) : undefined,
  };
}

/** Undefined as well for a unit that we do not know: a limit without a window says nothing. */
function limitOf(limit: WireLimit | null): CurrentLimit | undefined {
  const unit = limit === null ? undefined : units.get(limit.unit);
  if (limit === null || unit === undefined) return undefined;
  const unitMultiplier = limit.unitMultiplier?.value || 1;
  return {
    requestsPerUnit: limit.requestsPerUnit,
    unit,
    ...(unitMultiplier === 1 ? {} : { unitMultiplier }),
    windowSeconds: unitSeconds[unit] * unitMultiplier,
    name: limit.name || undefined,
  };
}
