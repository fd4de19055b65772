/** Both packages of the gRPC protocol: the service definition that proto-loader compiles, and its messages to and from our types. */
import { fileURLToPath } from 'node:url';
import type { MethodDefinition, ServiceDefinition } from '@grpc/proto-loader';
import { type Unit, windowSeconds } from '#config';
import {
  type CurrentLimit,
  type Decision,
  type Descriptor,
  type DescriptorStatus,
  type Entry,
  InvalidRequest,
  type LimitOverride,
  type RateLimitRequest,
  type ResponseHeader,
} from '../limiter.ts';

/** `lyft` is the older one: it has no limit or hits of a descriptor, and no names, waits and headers in a decision. */
export type ProtocolName = 'v3' | 'lyft';

export interface Codec {
  /** For example `pb.lyft.ratelimit.RateLimitService`. */
  readonly service: string;
  /** The `:path` of a call: `/<service>/ShouldRateLimit`. */
  readonly path: string;
  /** For a grpc-js server: its handler gets a `RateLimitRequest` and answers with a `Decision`. */
  readonly definition: ServiceDefinition;
  /** Throws an `InvalidRequest` for a limit that the protocol has no field for. */
  encodeRequest(request: RateLimitRequest): Buffer;
  /** Throws for bytes that are no request. */
  decodeRequest(bytes: Buffer): RateLimitRequest;
  encodeDecision(decision: Decision): Buffer;
  /** Throws for bytes that are no decision. */
  decodeDecision(bytes: Buffer): Decision;
}

const packages = {
  v3: { file: 'envoy/service/ratelimit/v3/rls.proto', service: 'envoy.service.ratelimit.v3.RateLimitService' },
  lyft: { file: 'ratelimit.proto', service: 'pb.lyft.ratelimit.RateLimitService' },
} as const satisfies Record<ProtocolName, object>;

/** Loads the library, and compiles the package's files: some tens of milliseconds. */
export async function loadCodec(name: ProtocolName): Promise<Codec> {
  const { load } = await import('@grpc/proto-loader');
  const { file, service } = packages[name];
  // Three levels up from src/ratelimit/grpc, and from dist/ratelimit/grpc as well.
  const includeDirs = [fileURLToPath(new URL('../../../proto', import.meta.url))];
  const definitions = await load(file, { includeDirs, longs: Number });
  const method = methodOf(definitions[service], service);
  const encodeRequest = (request: RateLimitRequest) => method.requestSerialize(wireRequest(request));
  const decodeRequest = (bytes: Buffer) => requestOf(method.requestDeserialize(bytes) as WireRequest);
  const encodeDecision = (decision: Decision) => method.responseSerialize(wireDecision(decision));
  const decodeDecision = (bytes: Buffer) => decisionOf(method.responseDeserialize(bytes) as WireDecision);
  return Object.freeze({
    service,
    path: method.path,
    definition: {
      ShouldRateLimit: {
        ...method,
        requestDeserialize: decodeRequest,
        responseSerialize: (decision: object) => encodeDecision(decision as Decision),
      },
    },
    encodeRequest,
    decodeRequest,
    encodeDecision,
    decodeDecision,
  });
}

function methodOf(definition: object | undefined, service: string): MethodDefinition<object, object> {
  const method = (definition as ServiceDefinition | undefined)?.['ShouldRateLimit'];
  if (method === undefined) throw new Error(`proto: no ${service}.ShouldRateLimit`);
  return method;
}

/** The units by their numbers in envoy.type.v3.RateLimitUnit and in both packages; 0 is unknown. */
export const unitsByNumber: readonly (Unit | undefined)[] = Object.freeze([
  undefined,
  'second',
  'minute',
  'hour',
  'day',
  'month',
  'year',
  'week',
]);

function unitNumber(unit: Unit): number {
  return unitsByNumber.indexOf(unit);
}

/** As proto-loader reads a message: a field that is not there, or has its default, may be absent. */
interface WireRequest {
  readonly domain?: string;
  readonly descriptors?: readonly WireDescriptor[];
  readonly hitsAddend?: number;
}

interface WireDescriptor {
  readonly entries?: readonly Partial<Entry>[];
  readonly limit?: { readonly requestsPerUnit?: number; readonly unit?: number };
  readonly hitsAddend?: WireNumber;
}

interface WireNumber {
  readonly value?: number;
}

function requestOf({ domain = '', descriptors = [], hitsAddend = 0 }: WireRequest): RateLimitRequest {
  return { domain, descriptors: descriptors.map(descriptorOf), hitsAddend };
}

function descriptorOf({ entries = [], limit, hitsAddend }: WireDescriptor): Descriptor {
  return {
    entries: entries.map(entryOf),
    ...(limit && { limit: overrideOf(limit) }),
    ...(hitsAddend && { hitsAddend: hitsAddend.value ?? 0 }),
  };
}

function entryOf({ key = '', value = '' }: Partial<Entry>): Entry {
  return { key, value };
}

function overrideOf({ requestsPerUnit = 0, unit = 0 }: NonNullable<WireDescriptor['limit']>): LimitOverride {
  return { requestsPerUnit, unit: unitsByNumber[unit] };
}

function wireRequest({ domain, descriptors, hitsAddend = 0 }: RateLimitRequest): WireRequest {
  return { domain: domain.toWellFormed(), descriptors: descriptors.map(wireDescriptor), hitsAddend };
}

function wireDescriptor({ entries, limit, hitsAddend }: Descriptor): WireDescriptor {
  if ((limit?.unitMultiplier ?? 1) !== 1) throw new InvalidRequest('a limit with a unit_multiplier cannot be sent');
  return {
    entries: entries.map(wireEntry),
    ...(limit?.unit && { limit: { requestsPerUnit: limit.requestsPerUnit, unit: unitNumber(limit.unit) } }),
    ...(hitsAddend !== undefined && { hitsAddend: { value: hitsAddend } }),
  };
}

/** protobufjs writes a lone surrogate as invalid UTF-8, which other runtimes refuse with the whole request. */
function wireEntry({ key, value }: Entry): Entry {
  return { key: key.toWellFormed(), value: value.toWellFormed() };
}

interface WireDecision {
  readonly overallCode?: number;
  readonly statuses?: readonly WireStatus[];
  readonly responseHeadersToAdd?: readonly WireHeader[];
}

interface WireStatus {
  readonly code?: number;
  readonly currentLimit?: WireLimit;
  readonly limitRemaining?: number;
  readonly durationUntilReset?: { readonly seconds?: number; readonly nanos?: number };
}

interface WireLimit {
  readonly requestsPerUnit?: number;
  readonly unit?: number;
  readonly name?: string;
  readonly unitMultiplier?: WireNumber;
}

interface WireHeader {
  readonly key?: string;
  readonly value?: string;
  readonly rawValue?: Buffer;
}

const codes = Object.freeze({ OK: 1, OVER_LIMIT: 2 });

/** An empty message is a valid one of this protocol, but it decides nothing. */
function decisionOf({ overallCode = 0, statuses = [], responseHeadersToAdd }: WireDecision): Decision {
  if (overallCode !== codes.OK && overallCode !== codes.OVER_LIMIT)
    throw new Error(`overall_code is ${overallCode === 0 ? 'UNKNOWN' : overallCode}`);
  return {
    overallCode: overallCode === codes.OK ? 'OK' : 'OVER_LIMIT',
    statuses: statuses.map(statusOf),
    ...(responseHeadersToAdd && { responseHeaders: responseHeadersToAdd.map(headerOf) }),
  };
}

function statusOf({ code, currentLimit, limitRemaining = 0, durationUntilReset: wait }: WireStatus): DescriptorStatus {
  return {
    code: code === codes.OVER_LIMIT ? 'OVER_LIMIT' : 'OK',
    currentLimit: currentLimit && currentLimitOf(currentLimit),
    limitRemaining,
    // In whole seconds, rounded away from 0.
    resetSeconds: wait && (wait.seconds ?? 0) + Math.sign(wait.nanos ?? 0),
  };
}

/** Undefined for an unknown unit: a limit without a window means nothing. */
function currentLimitOf(limit: WireLimit): CurrentLimit | undefined {
  const { requestsPerUnit = 0, name } = limit;
  const unit = unitsByNumber[limit.unit ?? 0];
  if (unit === undefined) return undefined;
  const unitMultiplier = limit.unitMultiplier?.value || 1;
  return {
    requestsPerUnit,
    unit,
    ...(unitMultiplier > 1 && { unitMultiplier }),
    windowSeconds: windowSeconds({ unit, unitMultiplier }),
    name: name || undefined,
  };
}

/** One of the two values is set; the raw one is bytes, as headers are. */
function headerOf({ key = '', value = '', rawValue }: WireHeader): ResponseHeader {
  return { name: key, value: value || (rawValue?.toString('latin1') ?? '') };
}

function wireDecision({ overallCode, statuses, responseHeaders = [] }: Decision): WireDecision {
  return {
    overallCode: codes[overallCode],
    statuses: statuses.map(wireStatus),
    responseHeadersToAdd: responseHeaders.map(({ name, value }) => ({ key: name, value: value.toWellFormed() })),
  };
}

function wireStatus({ code, currentLimit, limitRemaining, resetSeconds }: DescriptorStatus): WireStatus {
  return {
    code: codes[code],
    ...(currentLimit && { currentLimit: wireLimit(currentLimit) }),
    limitRemaining,
    ...(resetSeconds !== undefined && { durationUntilReset: { seconds: resetSeconds } }),
  };
}

function wireLimit({ requestsPerUnit, unit, name, unitMultiplier = 1 }: CurrentLimit): WireLimit {
  return {
    requestsPerUnit,
    unit: unitNumber(unit),
    ...(name !== undefined && { name: name.toWellFormed() }),
    ...(unitMultiplier !== 1 && { unitMultiplier: { value: unitMultiplier } }),
  };
}
