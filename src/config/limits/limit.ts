/** One limit of a descriptor, or several: unit, window, algorithm and burst, and what of these cannot be combined. */
import * as z from 'zod';
import { didYouMean, type Fault } from '../errors.ts';
import { lengthFault, reportFault, strict, text } from '../fields/field.ts';
import { either, notEmpty, wholeNumber } from '../fields/values.ts';
import { quote } from '../quote.ts';

export type Unit = 'second' | 'minute' | 'hour' | 'day' | 'week' | 'month' | 'year';

/** How a limit counts; src/ratelimit describes each exactly. */
export type Algorithm = 'fixed_window' | 'sliding_window' | 'token_bucket';

/**
 * So many requests per `unitMultiplier` × `unit`. `unlimited` has no unit and no number (they read `'second'` and 0).
 */
export interface Limit {
  readonly unit: Unit;
  /** 30 with `'second'` is half a minute. @default 1 */
  readonly unitMultiplier: number;
  readonly requestsPerUnit: number;
  readonly unlimited: boolean;
  readonly name: string | undefined;
  /** Names of the limits that this one replaces when both apply to the same request. */
  readonly replaces: readonly string[];
  /** Counts, and never denies. */
  readonly shadowMode: boolean;
  /** An exhausted limit denies a request only with all other limits of the request that are in quota mode. */
  readonly quotaMode: boolean;
  /** @default 'fixed_window' */
  readonly algorithm: Algorithm;
  /** The capacity of a token bucket; undefined: `requestsPerUnit`. */
  readonly burst: number | undefined;
}

const unitSeconds: Readonly<Record<Unit, number>> = Object.freeze({
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  week: 7 * 86_400,
  month: 30 * 86_400,
  year: 365 * 86_400,
});

const units = Object.keys(unitSeconds);
const algorithms: readonly Algorithm[] = ['fixed_window', 'sliding_window', 'token_bucket'];

/** A century: microseconds since the epoch stay exact numbers for longer than that. */
const secondsMax = 100 * unitSeconds.year;

// uint32 on the wire.
const numberMax = 4_294_967_295;

/** A name is written into two headers of each response. */
const nameLengthMax = 128;

const replacedRemedy = 'Write the name of the limit to replace, for example replaces: [{ name: per user }].';

/** `rate_limit` as in the file, but for `shadowMode` and `quotaMode`, which belong to the descriptor. */
const fieldsSchema = strict({
  unit: leftOut(text(unitFault)),
  unit_multiplier: wholeNumber(1, numberMax).optional(),
  requests_per_unit: leftOut(wholeNumber(0, numberMax)),
  unlimited: leftOut(z.boolean()),
  name: leftOut(text((name) => lengthFault(name, nameLengthMax))),
  replaces: leftOut(z.array(strict({ name: notEmpty(replacedRemedy) }))),
  algorithm: text(algorithmFault).optional(),
  burst: wholeNumber(1, numberMax).optional(),
});

type LimitFields = z.infer<typeof fieldsSchema>;

const limitSchema = fieldsSchema
  .transform((fields) => ({ fields, limit: limitOf(fields) }))
  .check((payload) => reportFault(payload, [], limitFault(payload.value.fields, payload.value.limit)))
  .transform(({ limit }) => limit);

const listSchema = z
  .array(limitSchema)
  .check((payload) => reportFault(payload, [], payload.value.length === 0 ? emptyList : clashFault(payload.value)));

/** One map or a list of maps. */
export const limitsSchema = either<readonly Limit[]>((value) =>
  Array.isArray(value) ? listSchema : limitSchema.transform((limit) => [limit]),
);

/** A key without a value is as good as none, as in envoyproxy/ratelimit. */
export function leftOut<Schema extends z.ZodType>(schema: Schema) {
  return z.preprocess((value) => value ?? undefined, schema.optional());
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
    algorithm: algorithms.find((algorithm) => algorithm === fields.algorithm) ?? 'fixed_window',
    burst: fields.burst,
  };
}

function unitOf(name: string | undefined): Unit | undefined {
  return units.find((unit) => unit === name?.toLowerCase()) as Unit | undefined;
}

/** The first fault of a limit whose fields are valid on their own. */
function limitFault(given: LimitFields, limit: Limit): Fault | undefined {
  if (limit.unlimited) return unlimitedFault(given) ?? selfFault(limit);
  return incompleteFault(given) ?? burstFault(limit) ?? windowFault(limit) ?? selfFault(limit);
}

function unlimitedFault(given: LimitFields): Fault | undefined {
  const { unit, unit_multiplier, algorithm, burst } = given;
  const counting = Object.entries({ unit, unit_multiplier, algorithm, burst });
  const others = counting.filter(([, value]) => value !== undefined).map(([key]) => key);
  if (others.length === 0) return undefined;
  return { message: `is unlimited and has ${others.join(' and ')} as well`, remedy: keepUnlimited };
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
    message: 'counts over more than a hundred years',
    remedy: 'Give it a shorter window; a token bucket needs burst / requests_per_unit windows to fill up.',
  };
}

/** The window of a limit in seconds; as in envoyproxy/ratelimit a month is 30 days, a year 365. */
export function windowSeconds({ unit, unitMultiplier }: Pick<Limit, 'unit' | 'unitMultiplier'>): number {
  return unitSeconds[unit] * unitMultiplier;
}

/**
 * How long a counter of the limit matters: its window, or the time in which an empty token bucket fills up, whichever
 * is longer.
 */
function memorySeconds(limit: Limit): number {
  const window = windowSeconds(limit);
  const { algorithm, requestsPerUnit } = limit;
  if (algorithm !== 'token_bucket' || requestsPerUnit === 0) return window;
  // Each request's part is rounded up to a microsecond.
  return Math.max(window, (limit.burst ?? requestsPerUnit) * Math.max(window / requestsPerUnit, 1e-6));
}

function selfFault({ name, replaces }: Limit): Fault | undefined {
  if (name === undefined || !replaces.includes(name)) return undefined;
  return {
    message: `replaces ${quote(name)}, which is its own name`,
    remedy: 'Name the limit that it replaces, or remove replaces.',
  };
}

const emptyList: Fault = {
  message: 'is an empty list',
  remedy: 'Leave rate_limit out to let pass, or write rate_limit: { unit: minute, requests_per_unit: 10 }.',
};

/** What is wrong with the limits of one descriptor together. */
function clashFault(limits: readonly Limit[]): Fault | undefined {
  if (limits.length > 1 && limits.some(({ unlimited }) => unlimited))
    return { message: 'is unlimited and has other limits as well', remedy: keepUnlimited };
  const counters = limits.map((limit) => `${limit.algorithm} of ${windowSeconds(limit)} s`);
  const repeated = counters.find((counter, index) => counters.indexOf(counter) !== index);
  if (repeated === undefined) return undefined;
  return {
    message: `has two limits that count alike (${repeated.replace('_', ' ')})`,
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

function notAmong(known: readonly string[], [one, all]: readonly [string, string], word: string): Fault {
  return {
    message: `${quote(word)} is not ${one}${didYouMean(word, known)}`,
    remedy: `The ${all} are ${known.join(', ')}.`,
  };
}
