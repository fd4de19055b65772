/** Requests and decisions in the JSON mapping of proto3 (protobuf.dev, ProtoJSON format). */
import type { Unit } from '#config';
import { unitsByNumber } from '../grpc/codec.ts';
import {
  type Decision,
  type Descriptor,
  type DescriptorStatus,
  type Entry,
  InvalidRequest,
  type LimitOverride,
  type RateLimitRequest,
} from '../limiter.ts';

/**
 * Names in camelCase or as the protocol's files have them, numbers as numbers or text, enums by name or number, null for
 * what is absent. Throws an `InvalidRequest` that names the place of what cannot be read, unknown fields included.
 */
export function parseJsonRequest(text: string): RateLimitRequest {
  const { domain, descriptors, hitsAddend } = fieldsOf(parsed(text), '', ['domain', 'descriptors', 'hitsAddend']);
  return {
    domain: textOf(domain, 'domain'),
    descriptors: listOf(descriptors, 'descriptors', descriptorOf),
    hitsAddend: numberOf(hitsAddend, 'hitsAddend', uint32Max) ?? 0,
  };
}

/** Fields with their default are left out, as the mapping does it. */
export function formatJsonDecision({ overallCode, statuses, responseHeaders = [] }: Decision): string {
  return JSON.stringify({
    overallCode,
    statuses: present(statuses.map(statusFields)),
    responseHeadersToAdd: present(responseHeaders.map(({ name, value }) => ({ key: name, value }))),
  });
}

const uint32Max = 4_294_967_295;

function descriptorOf(value: unknown, at: string): Descriptor {
  const { entries, limit, hitsAddend } = fieldsOf(value, at, ['entries', 'limit', 'hitsAddend']);
  return {
    entries: listOf(entries, `${at}.entries`, entryOf),
    limit: absent(limit) ? undefined : overrideOf(limit, `${at}.limit`),
    hitsAddend: numberOf(hitsAddend, `${at}.hitsAddend`, Number.MAX_SAFE_INTEGER),
  };
}

function entryOf(value: unknown, at: string): Entry {
  const fields = fieldsOf(value, at, ['key', 'value']);
  return { key: textOf(fields.key, `${at}.key`), value: textOf(fields.value, `${at}.value`) };
}

function overrideOf(value: unknown, at: string): LimitOverride {
  const { requestsPerUnit, unit } = fieldsOf(value, at, ['requestsPerUnit', 'unit']);
  return {
    requestsPerUnit: numberOf(requestsPerUnit, `${at}.requestsPerUnit`, uint32Max) ?? 0,
    unit: unitOf(unit, `${at}.unit`),
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new InvalidRequest(`the body is not JSON: ${cause instanceof Error ? cause.message : cause}`);
  }
}

/** The fields by their names in camelCase. `at` is the place of the message; '' is the whole body. */
function fieldsOf<Name extends string>(
  value: unknown,
  at: string,
  names: readonly Name[],
): Partial<Record<Name, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new InvalidRequest(`${at || 'the body'} must be an object`);
  const fields: Partial<Record<Name, unknown>> = {};
  for (const [given, content] of Object.entries(value)) {
    const place = at === '' ? given : `${at}.${given}`;
    const name = names.find((one) => one === given || snakeCase(one) === given);
    if (name === undefined) throw new InvalidRequest(`${place} is not a field; there are ${names.join(', ')}`);
    if (name in fields) throw new InvalidRequest(`${place} is there twice, by both of its names`);
    fields[name] = content;
  }
  return fields;
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
}

function absent(value: unknown): value is null | undefined {
  return value === undefined || value === null;
}

function textOf(value: unknown, at: string): string {
  if (absent(value)) return '';
  if (typeof value !== 'string') throw new InvalidRequest(`${at} must be text`);
  return value;
}

function listOf<T>(value: unknown, at: string, read: (item: unknown, at: string) => T): readonly T[] {
  if (absent(value)) return [];
  if (!Array.isArray(value)) throw new InvalidRequest(`${at} must be a list`);
  return value.map((item, index) => read(item, `${at}[${index}]`));
}

function numberOf(value: unknown, at: string, max: number): number | undefined {
  if (absent(value)) return undefined;
  const number = typeof value === 'string' && /^\d{1,20}$/.test(value) ? Number(value) : value;
  if (typeof number === 'number' && Number.isInteger(number) && number >= 0 && number <= max) return number;
  throw new InvalidRequest(`${at} must be a whole number from 0 to ${max}`);
}

function unitOf(value: unknown, at: string): Unit {
  const unit =
    typeof value === 'number' ? unitsByNumber[value] : unitsByNumber.find((one) => one?.toUpperCase() === value);
  if (unit !== undefined && !absent(value)) return unit;
  const names = unitsByNumber.flatMap((one) => one?.toUpperCase() ?? []);
  throw new InvalidRequest(`${at} must be one of ${names.join(', ')}`);
}

function statusFields({ code, currentLimit, limitRemaining, resetSeconds }: DescriptorStatus): object {
  return {
    code,
    currentLimit: currentLimit && {
      requestsPerUnit: currentLimit.requestsPerUnit || undefined,
      unit: currentLimit.unit.toUpperCase(),
      unitMultiplier: currentLimit.unitMultiplier,
      name: currentLimit.name || undefined,
    },
    limitRemaining: limitRemaining || undefined,
    durationUntilReset: resetSeconds === undefined ? undefined : `${resetSeconds}s`,
  };
}

function present<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list;
}
