/** The limits of a descriptor: so many requests in a window of time, one of them or several, or unlimited. */
import * as z from 'zod';
import type { Algorithm, Limit, Unit } from './configuration.ts';
import { type Fault, strict, text, wholeNumber } from './fields.ts';
import { limitFault } from './limit-faults.ts';
import { didYouMean } from './suggest.ts';
import { units, windowSeconds } from './window.ts';

const algorithms: readonly Algorithm[] = ['fixed_window', 'sliding_window', 'token_bucket'];

// uint32 on the wire.
const numberMax = 4_294_967_295;

/** `rate_limit` as it stands in the file, but for `shadowMode`, which is the descriptor's. */
const limitSchema = strict({
  unit: text(unitFault).optional(),
  unit_multiplier: wholeNumber(1, numberMax).optional(),
  requests_per_unit: wholeNumber(0, numberMax).optional(),
  unlimited: z.boolean().default(false),
  name: z.string().optional(),
  replaces: z.array(strict({ name: text(replacedNameFault) })).default([]),
  algorithm: text(algorithmFault).optional(),
  burst: wholeNumber(1, numberMax).optional(),
})
  .transform((fields) => ({ fields, limit: limitOf(fields) }))
  .check(({ value: { fields, limit }, issues }) => {
    const fault = limitFault(fields, limit);
    if (fault !== undefined) issues.push(issueOf(fault, fields));
  })
  .transform(({ limit }) => limit);

const listSchema = z.array(limitSchema).check(({ value, issues }) => {
  const fault = value.length === 0 ? emptyList : companyFault(value);
  if (fault !== undefined) issues.push(issueOf(fault, value));
});

/** One map or a list of maps: a union would not say which of the two was meant, so we look. */
export const limitsSchema = z.unknown().transform((value, { issues }): readonly Limit[] => {
  const read = Array.isArray(value) ? listSchema.safeParse(value) : limitSchema.safeParse(value);
  if (read.success) return Array.isArray(read.data) ? read.data : [read.data];
  for (const issue of read.error.issues) issues.push({ ...issue, input: value } as z.core.$ZodRawIssue);
  return z.NEVER;
});

interface LimitFields {
  readonly unit?: string | undefined;
  readonly unit_multiplier?: number | undefined;
  readonly requests_per_unit?: number | undefined;
  readonly unlimited: boolean;
  readonly name?: string | undefined;
  readonly replaces: readonly { readonly name: string }[];
  readonly algorithm?: string | undefined;
  readonly burst?: number | undefined;
}

function limitOf(fields: LimitFields): Limit {
  return {
    unit: unitOf(fields.unit) ?? 'second',
    unitMultiplier: fields.unit_multiplier ?? 1,
    requestsPerUnit: fields.requests_per_unit ?? 0,
    unlimited: fields.unlimited,
    name: fields.name,
    replaces: fields.replaces.map(({ name }) => name),
    shadowMode: false,
    algorithm: algorithms.find((algorithm) => algorithm === fields.algorithm) ?? 'fixed_window',
    burst: fields.burst,
  };
}

function issueOf({ message, remedy }: Fault, input: unknown): z.core.$ZodRawIssue {
  return { code: 'custom', input, message, params: { remedy } };
}

const emptyList: Fault = {
  message: 'is an empty list',
  remedy: 'Leave rate_limit out to let pass, or write rate_limit: { unit: minute, requests_per_unit: 10 }.',
};

/** What is wrong with limits that stand together. */
function companyFault(limits: readonly Limit[]): Fault | undefined {
  if (limits.length > 1 && limits.some(({ unlimited }) => unlimited))
    return {
      message: 'is unlimited and has other limits as well',
      remedy: 'Keep unlimited: true alone, or remove it.',
    };
  const counters = limits.map((limit) => `${limit.algorithm} of ${windowSeconds(limit)} s`);
  const twice = counters.find((counter, index) => counters.indexOf(counter) !== index);
  if (twice === undefined) return undefined;
  return {
    message: `has two limits that count alike (${twice.replace('_', ' ')})`,
    remedy: 'Keep the stricter one, or give one of them another unit, unit_multiplier or algorithm.',
  };
}

function unitOf(name: string | undefined): Unit | undefined {
  return units.find((unit) => unit === name?.toLowerCase());
}

function unitFault(unit: string): Fault | undefined {
  if (unitOf(unit) !== undefined) return undefined;
  return {
    message: `"${unit}" is not a unit${didYouMean(unit, units)}`,
    remedy: `The units are ${units.join(', ')}.`,
  };
}

function algorithmFault(name: string): Fault | undefined {
  if (algorithms.some((algorithm) => algorithm === name)) return undefined;
  return {
    message: `"${name}" is not an algorithm${didYouMean(name, algorithms)}`,
    remedy: `The algorithms are ${algorithms.join(', ')}.`,
  };
}

function replacedNameFault(name: string): Fault | undefined {
  return name === ''
    ? {
        message: 'is empty',
        remedy: 'Write the name of the limit to replace, for example replaces: [{ name: per user }].',
      }
    : undefined;
}
