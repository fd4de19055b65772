/** Builds parsed limits, descriptors and domains in one line each. */
import type { LimitDescriptor, LimitDomain } from '#config';
import type { Hit } from '#ratelimit';
import type { Limit, Unit } from '#ratelimit/limit';

const source = { file: 'limits.yaml', line: 1 };

export function limit(requestsPerUnit: number, unit: Unit = 'minute', more: Partial<Limit> = {}): Limit {
  return { ...plain, unit, requestsPerUnit, ...more };
}

export const plain: Limit = {
  unit: 'second',
  unitMultiplier: 1,
  requestsPerUnit: 0,
  unlimited: false,
  name: undefined,
  replaces: [],
  shadowMode: false,
  quotaMode: false,
  algorithm: 'fixed_window',
  burst: undefined,
};

export const unlimited: Limit = { ...plain, unlimited: true };

/** @param at `key` or `key=value` */
export function node(
  at: string,
  own: Limit | readonly Limit[] = [],
  ...descriptors: LimitDescriptor[]
): LimitDescriptor {
  const [key = '', value] = at.split('=');
  const limits = Array.isArray(own) ? own : [own as Limit];
  return {
    key,
    value,
    limits,
    shareThreshold: false,
    detailedMetric: false,
    valueToMetric: false,
    descriptors,
    source,
  };
}

export function domain(name: string, ...descriptors: LimitDescriptor[]): LimitDomain {
  return { domain: name, descriptors, source };
}

/** The descriptor of a request. @param entries each as `key=value` */
export function descriptor(...entries: string[]) {
  return {
    entries: entries.map((text) => {
      const [key = '', value = ''] = text.split('=');
      return { key, value };
    }),
  };
}

/** A hit on a counter that admits three a minute. */
export function hitOfThree(changes: Partial<Hit> = {}): Hit {
  const one: Hit = {
    key: 'a',
    algorithm: 'fixed_window',
    windowSeconds: 60,
    limit: 3,
    burst: 3,
    hits: 1,
    shadow: false,
  };
  return { ...one, ...changes };
}
