/** The limits of a descriptor: unit, window, algorithm and burst, and which of these cannot be combined. */
import * as z from 'zod';
import { type Algorithm, type Limit, type Unit, uint32Max, unitSeconds, windowSeconds } from '#ratelimit/limit';
import { didYouMean, type Fault } from '../errors.ts';
import { type Data, lengthFault, reportFault, strict, text } from '../fields/field.ts';
import { anyCase, described, eitherOf, isGiven, isMissing, isTrue } from '../fields/json-schema.ts';
import { either, notEmpty, wholeNumber } from '../fields/values.ts';
import { quote } from '../quote.ts';

const units = Object.keys(unitSeconds);
const algorithms: readonly Algorithm[] = ['fixed_window', 'sliding_window', 'token_bucket'];

/** A century, which is short enough for microseconds since the epoch to remain exact numbers. */
const secondsMax = 100 * unitSeconds.year;

/** Bounds the name because it appears in two headers of each response. */
const nameLengthMax = 128;

const replacedRemedy = 'Write the name of the limit to replace, for example replaces: [{ name: per user }].';

/**
 * `rate_limit` in a file. The types of its texts name the values that their checks accept. It lacks `shadow_mode` and
 * `quota_mode`, which are fields of the descriptor.
 */
const fieldsSchema = strict({
  unit: nullishAsMissing(
    text(unitFault, {
      anyOf: [{ enum: units }, { pattern: `^(?:${units.map(anyCase).join('|')})$` }],
    }) as z.ZodType<string, Unit | Uppercase<Unit>>,
  ),
  unit_multiplier: wholeNumber(1, uint32Max).optional(),
  requests_per_unit: nullishAsMissing(wholeNumber(0, uint32Max)),
  unlimited: nullishAsMissing(z.boolean()),
  name: nullishAsMissing(text((name) => lengthFault(name, nameLengthMax), { maxLength: nameLengthMax })),
  replaces: nullishAsMissing(z.array(strict({ name: notEmpty(replacedRemedy) }))),
  algorithm: (text(algorithmFault, { enum: algorithms }) as z.ZodType<Algorithm, Algorithm>).optional(),
  burst: wholeNumber(1, uint32Max).optional(),
});

type LimitFields = z.infer<typeof fieldsSchema>;
type Input = Data<z.input<typeof fieldsSchema>>;

/** What a file or a program may write as a limit. */
export interface RateLimitInput extends Input {
  /** The window: a second, minute, hour, day, week, month (30 days) or year (365 days). Required unless `unlimited`. */
  readonly unit?: Input['unit'];
  /** The number of units in the window. @default 1 */
  readonly unit_multiplier?: Input['unit_multiplier'];
  /** How many requests a window allows. @default 0, which denies all requests */
  readonly requests_per_unit?: Input['requests_per_unit'];
  /** Allows all requests. @default false */
  readonly unlimited?: Input['unlimited'];
  /** The name of the limit in `RateLimit` headers and in `replaces` of other limits. */
  readonly name?: Input['name'];
  /** The names of other limits, which do not apply to a request that this one counts. */
  readonly replaces?: Input['replaces'];
  /** `fixed_window`, `sliding_window` or `token_bucket`. @default 'fixed_window' */
  readonly algorithm?: Input['algorithm'];
  /** How many requests a full token bucket allows at once. @default requests_per_unit */
  readonly burst?: Input['burst'];
}

const isLimited = { properties: { unlimited: { enum: [false, null] } } };
const isTokenBucket = {
  properties: { algorithm: { const: 'token_bucket' satisfies Algorithm } },
  required: ['algorithm'],
};

const limitSchema = described(fieldsSchema, {
  allOf: [
    eitherOf([isGiven('unit'), isTrue('unlimited')], 'write unit, or unlimited: true'),
    eitherOf([isLimited, { properties: { unit: { type: 'null' } } }], 'unlimited cannot be combined with unit'),
    ...['unit_multiplier', 'algorithm', 'burst'].map((name) =>
      eitherOf([isLimited, isMissing(name)], `unlimited cannot be combined with ${name}`),
    ),
    eitherOf([isMissing('burst'), isTokenBucket], 'only a token bucket has a burst'),
  ],
})
  .transform((fields) => ({ fields, limit: limitOf(fields) }))
  .check((payload) => reportFault(payload, [], limitFault(payload.value.fields, payload.value.limit)))
  .transform(({ limit }) => limit);

const listSchema = described(
  z
    .array(limitSchema)
    .check((payload) => reportFault(payload, [], payload.value.length === 0 ? emptyList : clashFault(payload.value))),
  { minItems: 1 },
);

/** A map, or a list of maps. */
export const limitsSchema = either((value) => (Array.isArray(value) ? listSchema : singleSchema));
const singleSchema = limitSchema.transform((limit) => [limit]);

/** Makes a field optional and treats a key without a value as missing, like envoyproxy/ratelimit. */
export function nullishAsMissing<Schema extends z.ZodType>(schema: Schema) {
  return schema.nullish().transform((value) => value ?? undefined);
}

function limitOf(fields: LimitFields): Limit {
  return {
    unit: unitOf(fields.unit) ?? 'second',
    unitMultiplier: fields.unit_multiplier ?? 1,
    requestsPerUnit: fields.requests_per_unit ?? 0,
    unlimited: fields.unlimited ?? false,
    name: fields.name || undefined,
    replaces: (fields.replaces ?? []).map(({ name }) => name),
    shadowMode: false,
    quotaMode: false,
    algorithm: fields.algorithm ?? 'fixed_window',
    burst: fields.burst,
  };
}

function unitOf(name: string | undefined): Unit | undefined {
  return units.find((unit) => unit === name?.toLowerCase()) as Unit | undefined;
}

/** Returns the first fault of a limit whose fields are valid individually. */
function limitFault(given: LimitFields, limit: Limit): Fault | undefined {
  if (limit.unlimited) return unlimitedFault(given) ?? selfReplacementFault(limit);
  return incompleteFault(given) ?? burstFault(limit) ?? windowFault(limit) ?? selfReplacementFault(limit);
}

function unlimitedFault(given: LimitFields): Fault | undefined {
  const { unit, unit_multiplier, algorithm, burst } = given;
  const counting = Object.entries({ unit, unit_multiplier, algorithm, burst });
  const others = counting.filter(([, value]) => value !== undefined).map(([key]) => key);
  if (others.length === 0) return undefined;
  return { message: `has unlimited, which cannot be combined with ${others.join(' and ')}`, remedy: keepUnlimited };
}

const keepUnlimited = 'Keep unlimited: true alone, or remove it.';

function incompleteFault({ unit }: LimitFields): Fault | undefined {
  if (unit !== undefined) return undefined;
  return {
    message: 'has no unit',
    remedy: 'For example: rate_limit: { unit: minute, requests_per_unit: 10 }, or { unlimited: true }.',
  };
}

function burstFault({ algorithm, burst, requestsPerUnit }: Limit): Fault | undefined {
  if (algorithm === 'token_bucket') {
    if (requestsPerUnit > 0) return undefined;
    return {
      message: 'is a token bucket that never fills: requests_per_unit is 0',
      remedy: 'Write requests_per_unit: 1 or more, or leave algorithm out to deny every request.',
    };
  }
  if (burst === undefined) return undefined;
  return {
    message: 'has a burst, which only a token bucket can have',
    remedy: 'Add algorithm: token_bucket, or remove burst.',
  };
}

function windowFault(limit: Limit): Fault | undefined {
  if (memorySeconds(limit) <= secondsMax) return undefined;
  return {
    message: 'has a window of more than a hundred years',
    remedy: 'Use a shorter window. A token bucket takes burst / requests_per_unit windows to fill up.',
  };
}

/**
 * Returns how long a counter must be remembered: the window, or the time to fill an empty token bucket if that is longer.
 */
function memorySeconds(limit: Limit): number {
  const window = windowSeconds(limit);
  const { algorithm, requestsPerUnit } = limit;
  if (algorithm !== 'token_bucket' || requestsPerUnit === 0) return window;
  // The limiter rounds the time for each request up to a microsecond.
  return Math.max(window, (limit.burst ?? requestsPerUnit) * Math.max(window / requestsPerUnit, 1e-6));
}

function selfReplacementFault({ name, replaces }: Limit): Fault | undefined {
  if (name === undefined || !replaces.includes(name)) return undefined;
  return {
    message: `replaces ${quote(name)}, which is its own name`,
    remedy: 'Write the name of the limit to replace, or remove replaces.',
  };
}

const emptyList: Fault = {
  message: 'is an empty list',
  remedy: 'Remove rate_limit to allow all requests, or write rate_limit: { unit: minute, requests_per_unit: 10 }.',
};

/** Returns the conflict between the limits of one descriptor, if there is one. */
function clashFault(limits: readonly Limit[]): Fault | undefined {
  if (limits.length > 1 && limits.some(({ unlimited }) => unlimited))
    return { message: 'has an unlimited entry, which cannot be combined with other limits', remedy: keepUnlimited };
  const counters = limits.map((limit) => `${limit.algorithm} of ${windowSeconds(limit)} s`);
  const repeated = counters.find((counter, index) => counters.indexOf(counter) !== index);
  if (repeated === undefined) return undefined;
  return {
    message: `has two limits with the same algorithm and window (${repeated.replace('_', ' ')})`,
    remedy: 'Keep the stricter one, or give one of them another unit, unit_multiplier or algorithm.',
  };
}

function unitFault(unit: string): Fault | undefined {
  return unitOf(unit) === undefined ? notAmong(units, ['a unit', 'units'], unit) : undefined;
}

function algorithmFault(name: string): Fault | undefined {
  return algorithms.some((algorithm) => algorithm === name)
    ? undefined
    : notAmong(algorithms, ['an algorithm', 'algorithms'], name);
}

function notAmong(known: readonly string[], [singular, plural]: readonly [string, string], word: string): Fault {
  return {
    message: `${quote(word)} is not ${singular}${didYouMean(word, known)}`,
    remedy: `The ${plural} are ${known.join(', ')}.`,
  };
}
