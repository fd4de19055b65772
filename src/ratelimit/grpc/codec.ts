/** Encodes and decodes requests and decisions in both versions of the gRPC protocol. */
import { fileURLToPath } from 'node:url';
import type { MethodDefinition, ServiceDefinition } from '@grpc/proto-loader';
import { type ProtobufField, protobufFields } from '#foundation';
import { requestBounds, unitsByNumber, windowSeconds } from '#ratelimit/limit';
import type {
  CurrentLimit,
  Decision,
  Descriptor,
  DescriptorStatus,
  Entry,
  LimitOverride,
  RateLimitRequest,
  ResponseHeader,
} from '../limiter.ts';

/**
 * The version of the protocol. `lyft` is the older one: its descriptors have no limits or hits, and its decisions have
 * no names of limits, reset times or headers.
 */
export type ProtocolName = 'v3' | 'lyft';

export interface Codec {
  /** For example `pb.lyft.ratelimit.RateLimitService`. */
  readonly service: string;
  /** The `:path` of a call: `/<service>/ShouldRateLimit`. */
  readonly path: string;
  /** Defines the service for a grpc-js server whose handler receives a `RateLimitRequest` and returns a `Decision`. */
  readonly definition: ServiceDefinition;
  encodeRequest(request: RateLimitRequest): Buffer;
  /** Throws if the bytes are not a request. */
  decodeRequest(bytes: Buffer): RateLimitRequest;
  encodeDecision(decision: Decision): Buffer;
  /** Throws if the bytes are not a decision. */
  decodeDecision(bytes: Buffer): Decision;
}

const packages = {
  v3: { file: 'envoy/service/ratelimit/v3/rls.proto', service: 'envoy.service.ratelimit.v3.RateLimitService' },
  lyft: { file: 'ratelimit.proto', service: 'pb.lyft.ratelimit.RateLimitService' },
} as const satisfies Record<ProtocolName, object>;

/** Loads the library and compiles the protocol files, which takes some tens of milliseconds. */
export async function loadCodec(name: ProtocolName): Promise<Codec> {
  const { load } = await import('@grpc/proto-loader');
  const { file, service } = packages[name];
  // The path is the same from src/ratelimit/grpc and from dist/ratelimit/grpc.
  const includeDirs = [fileURLToPath(new URL('../../../proto', import.meta.url))];
  const definitions = await load(file, { includeDirs, longs: Number });
  const method = methodOf(definitions[service], service);
  const encodeRequest = (request: RateLimitRequest) => method.requestSerialize(wireRequest(request));
  const decodeRequest = (bytes: Buffer) => {
    checkFieldCount(bytes);
    return requestOf(method.requestDeserialize(bytes) as WireRequest);
  };
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
  if (method === undefined) throw new Error(`the proto files do not define ${service}.ShouldRateLimit`);
  return method;
}

/** The messages as proto-loader decodes them. A field that was not sent, or has its default value, may be absent. */
interface WireRequest {
  readonly domain?: string;
  readonly descriptors?: readonly WireDescriptor[];
  readonly hitsAddend?: number;
}

interface WireDescriptor {
  readonly entries?: readonly Partial<Entry>[];
  readonly limit?: { readonly requestsPerUnit?: number; readonly unit?: number; readonly unitMultiplier?: WireNumber };
  readonly hitsAddend?: WireNumber;
  readonly isNegativeHits?: boolean;
}

interface WireNumber {
  readonly value?: number;
}

function requestOf({ domain = '', descriptors = [], hitsAddend = 0 }: WireRequest): RateLimitRequest {
  return { domain, descriptors: descriptors.map(descriptorOf), hitsAddend };
}

function descriptorOf({ entries = [], limit, hitsAddend, isNegativeHits }: WireDescriptor): Descriptor {
  return {
    entries: entries.map(entryOf),
    ...(limit && { limit: overrideOf(limit) }),
    ...(hitsAddend && { hitsAddend: hitsAddend.value ?? 0 }),
    ...(isNegativeHits && { isNegativeHits }),
  };
}

function entryOf({ key = '', value = '' }: Partial<Entry>): Entry {
  return { key, value };
}

function overrideOf({
  requestsPerUnit = 0,
  unit = 0,
  unitMultiplier,
}: NonNullable<WireDescriptor['limit']>): LimitOverride {
  return {
    requestsPerUnit,
    unit: unitsByNumber[unit],
    ...(unitMultiplier && { unitMultiplier: unitMultiplier.value ?? 0 }),
  };
}

function wireRequest({ domain, descriptors, hitsAddend = 0 }: RateLimitRequest): WireRequest {
  return { domain: domain.toWellFormed(), descriptors: descriptors.map(wireDescriptor), hitsAddend };
}

function wireDescriptor({ entries, limit, hitsAddend, isNegativeHits }: Descriptor): WireDescriptor {
  return {
    entries: entries.map(wireEntry),
    ...(limit && { limit: wireOverride(limit) }),
    ...(hitsAddend !== undefined && { hitsAddend: { value: hitsAddend } }),
    ...(isNegativeHits && { isNegativeHits }),
  };
}

function wireOverride({ requestsPerUnit, unit, unitMultiplier = 1 }: LimitOverride): WireLimit {
  return {
    requestsPerUnit,
    unit: unit === undefined ? 0 : unitsByNumber.indexOf(unit),
    ...(unitMultiplier !== 1 && { unitMultiplier: { value: unitMultiplier } }),
  };
}

/** Replaces lone surrogates. protobufjs would encode them as invalid UTF-8, and other runtimes reject the request. */
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

/** Throws for an empty message, which is valid in this protocol but contains no decision. */
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
    // Round to whole seconds, away from 0.
    resetSeconds: wait && (wait.seconds ?? 0) + Math.sign(wait.nanos ?? 0),
  };
}

/** Returns undefined for an unknown unit, because a limit without a window is meaningless. */
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

/** Only one of the two values is set: the text of the header, or its bytes. Node wants one character for each byte. */
function headerOf({ key = '', value = '', rawValue }: WireHeader): ResponseHeader {
  return { name: key, value: (value === '' ? rawValue : Buffer.from(value))?.toString('latin1') ?? '' };
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
    unit: unitsByNumber.indexOf(unit),
    ...(name !== undefined && { name: name.toWellFormed() }),
    ...(unitMultiplier !== 1 && { unitMultiplier: { value: unitMultiplier } }),
  };
}

/** Shorter messages cannot have enough fields to block the process. */
const uncheckedBytes = 16_384;

/** Twice as many as a message within `requestBounds` has. */
const fieldsMax = 2 * requestBounds.descriptors;

/**
 * Throws for a request with too many fields before the library decodes them. Half a million descriptors fit into the
 * largest message. They would block the process for half a second and take 150 MB.
 */
function checkFieldCount(request: Buffer): void {
  if (request.length <= uncheckedBytes) return;
  for (const { tag, content } of checkedFields(request, [0x0a, descriptorTag, 0x18]))
    if (tag === descriptorTag && content !== undefined) checkedFields(content, [0x0a, 0x12, 0x1a, 0x20]);
}

const descriptorTag = 0x12;

/** `tags` are those of the fields 1 to 4. The library ignores the type in a tag, so another one would mislead us. */
function checkedFields(message: Buffer, tags: readonly number[]): readonly ProtobufField[] {
  const fields = protobufFields(message, fieldsMax + 1);
  if (fields.length > fieldsMax || fields.some(({ tag }) => tag < 0x28 && !tags.includes(tag)))
    throw new RangeError('the message has too many fields, or one of the wrong type');
  return fields;
}
