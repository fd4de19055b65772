/** What a limit says that does not go together. */
import type { Limit } from './configuration.ts';
import type { Fault } from './fields.ts';
import { memorySeconds, secondsMax } from './window.ts';

/** Which fields stand in the file. */
interface Given {
  readonly unit?: string | undefined;
  readonly unit_multiplier?: number | undefined;
  readonly requests_per_unit?: number | undefined;
  readonly algorithm?: string | undefined;
  readonly burst?: number | undefined;
}

/** The first fault of a limit whose fields are sound each for itself. */
export function limitFault(given: Given, limit: Limit): Fault | undefined {
  if (limit.unlimited) return unlimitedFault(given) ?? selfFault(limit);
  return incompleteFault(given) ?? burstFault(limit) ?? lengthFault(limit) ?? selfFault(limit);
}

function unlimitedFault(given: Given): Fault | undefined {
  const { unit, unit_multiplier, requests_per_unit, algorithm, burst } = given;
  const counting = Object.entries({ unit, unit_multiplier, requests_per_unit, algorithm, burst });
  const said = counting.filter(([, value]) => value !== undefined).map(([key]) => key);
  if (said.length === 0) return undefined;
  return {
    message: `is unlimited and has ${said.join(' and ')} as well`,
    remedy: 'Keep unlimited: true alone, or remove it.',
  };
}

function incompleteFault({ unit, requests_per_unit: requests }: Given): Fault | undefined {
  const missing = [unit === undefined ? 'unit' : '', requests === undefined ? 'requests_per_unit' : ''].filter(Boolean);
  if (missing.length === 0) return undefined;
  return {
    message: `has no ${missing.join(' and no ')}`,
    remedy: 'Write it so: rate_limit: { unit: minute, requests_per_unit: 10 }, or { unlimited: true }.',
  };
}

function burstFault({ algorithm, burst, requestsPerUnit }: Limit): Fault | undefined {
  if (algorithm === 'token_bucket') {
    if (requestsPerUnit > 0) return undefined;
    return {
      message: 'is a token bucket that nothing flows into: requests_per_unit is 0',
      remedy: 'Write requests_per_unit: 1 or more, or leave algorithm out to deny everybody.',
    };
  }
  if (burst === undefined) return undefined;
  return {
    message: 'has a burst, which only a token bucket can hold',
    remedy: 'Add algorithm: token_bucket, or remove burst.',
  };
}

function lengthFault(limit: Limit): Fault | undefined {
  if (memorySeconds(limit) <= secondsMax) return undefined;
  return {
    message: 'looks back on more than a hundred years',
    remedy: 'Give it a shorter window; a token bucket needs burst / requests_per_unit windows to fill up.',
  };
}

function selfFault({ name, replaces }: Limit): Fault | undefined {
  if (name === undefined || !replaces.includes(name)) return undefined;
  return {
    message: `replaces "${name}", which is itself`,
    remedy: 'Name the other limit that it takes the place of, or remove replaces.',
  };
}
