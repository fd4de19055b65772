/** The limit of a descriptor: so many requests in a unit of time, or unlimited. */
import * as z from 'zod';
import type { Limit, Unit } from './configuration.ts';
import { type Fault, strict, text, wholeNumber } from './fields.ts';
import { didYouMean } from './suggest.ts';

const units: readonly Unit[] = ['second', 'minute', 'hour', 'day', 'week', 'month', 'year'];

/** `rate_limit` as it stands in the file, into what the limiter reads. */
export const limitSchema = strict({
  unit: text(unitFault).optional(),
  // uint32 on the wire.
  requests_per_unit: wholeNumber(0, 4_294_967_295).optional(),
  unlimited: z.boolean().default(false),
  name: z.string().optional(),
})
  .check(({ value, issues }) => {
    const fault = value.unlimited ? unlimitedFault(value) : incompleteFault(value);
    if (fault !== undefined) {
      issues.push({
        code: 'custom',
        input: value,
        message: fault.message,
        params: { remedy: fault.remedy },
      });
    }
  })
  .transform(
    ({ unit, requests_per_unit: requestsPerUnit = 0, unlimited, name }): Limit => ({
      unit: unitOf(unit) ?? 'second',
      requestsPerUnit,
      unlimited,
      name,
    }),
  );

interface LimitFields {
  readonly unit?: string | undefined;
  readonly requests_per_unit?: number | undefined;
}

function unlimitedFault({ unit, requests_per_unit: requests }: LimitFields): Fault | undefined {
  if (unit === undefined && requests === undefined) return undefined;
  return {
    message: 'is unlimited and has a unit or a number of requests as well',
    remedy: 'Keep unlimited: true alone, or remove it.',
  };
}

function incompleteFault({ unit, requests_per_unit: requests }: LimitFields): Fault | undefined {
  const missing = [unit === undefined ? 'unit' : '', requests === undefined ? 'requests_per_unit' : ''].filter(Boolean);
  if (missing.length === 0) return undefined;
  return {
    message: `has no ${missing.join(' and no ')}`,
    remedy: 'Write it so: rate_limit: { unit: minute, requests_per_unit: 10 }, or { unlimited: true }.',
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
