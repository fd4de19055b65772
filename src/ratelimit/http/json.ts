/** Parses requests and formats decisions in the JSON mapping of proto3 (protobuf.dev, ProtoJSON format). */
import * as z from 'zod';
import { snakeCase } from '#config';
import { isMap, messageOf } from '#foundation';
import { excessOfJson } from '#http';
import {
  type Decision,
  type DescriptorStatus,
  descriptorHitsMax,
  InvalidRequest,
  type RateLimitRequest,
} from '#ratelimit';
import { requestBounds, uint32Max, unitsByNumber } from '#ratelimit/limit';

/**
 * Accepts field names in camelCase or snake_case, numbers as numbers or strings, enums by name or number, and null for
 * absent fields. Throws an `InvalidRequest` that names the location of an invalid value or unknown field.
 */
export function parseJsonRequest(text: string): RateLimitRequest {
  const result = request.safeParse(parseJson(text));
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new InvalidRequest(`${formatPath(issue?.path ?? []) || 'the body'} ${issue?.message}`);
}

/** Omits fields that have their default value, as the mapping prescribes. */
export function formatJsonDecision({ overallCode, statuses, responseHeaders = [] }: Decision): string {
  return JSON.stringify({
    overallCode,
    statuses: unlessEmpty(statuses.map(statusFields)),
    responseHeadersToAdd: unlessEmpty(responseHeaders.map(({ name, value }) => ({ key: name, value }))),
  });
}

/** What the largest request has: the request, its descriptors, their entries, and lists of both. */
const jsonMax = Object.freeze({ depth: 5, keys: 3 + requestBounds.descriptors * (7 + requestBounds.entries * 2) });

function parseJson(text: string): unknown {
  const excess = excessOfJson(text, jsonMax);
  if (excess !== undefined) throw new InvalidRequest(excess);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new InvalidRequest(`the body is not JSON: ${messageOf(cause)}`);
  }
}

/** Formats a path such as `descriptors[0].entries`. */
function formatPath(path: readonly PropertyKey[]): string {
  return path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .slice(1);
}

/** Accepts an object with only these fields, in camelCase or snake_case. */
function message<Shape extends z.core.$ZodLooseShape>(shape: Shape) {
  const names = Object.keys(shape);
  return z
    .custom<object>(isMap, {
      error: 'must be an object',
    })
    .transform((value, { issues }) => {
      const fields: Record<string, unknown> = {};
      for (const [given, content] of Object.entries(value)) {
        const name = names.find((one) => one === given || snakeCase(one) === given);
        const fault = fieldFault(name, fields, names);
        if (fault !== undefined) {
          issues.push({ code: 'custom', input: value, path: [given], message: fault });
          return z.NEVER;
        }
        if (name !== undefined) fields[name] = content;
      }
      return fields;
    })
    .pipe(z.object(shape));
}

function fieldFault(name: string | undefined, earlier: object, names: readonly string[]): string | undefined {
  if (name === undefined) return `is not a known field; known: ${names.join(', ')}`;
  return name in earlier ? 'appears twice, under both of its names' : undefined;
}

const text = z
  .string({ error: 'must be text' })
  .nullish()
  .transform((value) => value ?? '');

/** Checks the length first, because parsing a great many items would take seconds. */
function list<Item extends z.ZodType>(item: Item, name: 'descriptors' | 'entries') {
  const max = requestBounds[name];
  return z
    .custom<readonly unknown[]>(Array.isArray, { error: 'must be a list', abort: true })
    .check(({ value, issues }) => {
      const message = `has ${value.length} ${name}, more than the maximum of ${max}`;
      if (value.length > max) issues.push({ code: 'custom', input: value, message });
    })
    .pipe(z.array(item))
    .nullish()
    .transform((value) => value ?? []);
}

function wholeNumber(max: number) {
  const error = `must be a whole number from 0 to ${max}`;
  return z
    .preprocess(numberFromText, z.custom<number>((value) => isWhole(value, max), { error }).nullish())
    .transform((value) => value ?? undefined);
}

function isWhole(value: unknown, max: number): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max;
}

function numberFromText(value: unknown): unknown {
  return typeof value === 'string' && /^\d{1,20}$/.test(value) ? Number(value) : value;
}

const unitNames = unitsByNumber.flatMap((unit) => unit?.toUpperCase() ?? []);

const unit = z.unknown().transform((value, { issues }) => {
  const byName = (one: string | undefined) => one !== undefined && one.toUpperCase() === value;
  const found = typeof value === 'number' ? unitsByNumber[value] : unitsByNumber.find(byName);
  if (found === undefined) {
    issues.push({ code: 'custom', input: value, message: `must be one of ${unitNames.join(', ')}` });
    return z.NEVER;
  }
  return found;
});

const limit = message({
  requestsPerUnit: wholeNumber(uint32Max).transform((value) => value ?? 0),
  unit,
  unitMultiplier: wholeNumber(uint32Max),
});

const descriptor = message({
  entries: list(message({ key: text, value: text }), 'entries'),
  limit: limit.nullish().transform((value) => value ?? undefined),
  hitsAddend: wholeNumber(descriptorHitsMax),
  isNegativeHits: z
    .boolean({ error: 'must be true or false' })
    .nullish()
    .transform((value) => value ?? undefined),
});

const request = message({
  domain: text,
  descriptors: list(descriptor, 'descriptors'),
  hitsAddend: wholeNumber(uint32Max).transform((value) => value ?? 0),
});

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

function unlessEmpty<T>(list: readonly T[]): readonly T[] | undefined {
  return list.length === 0 ? undefined : list;
}
