/** Limits as the configuration gives them, in one line each. */
import type { Limit, LimitDescriptor, LimitDomain, Unit } from '#config';

const source = { file: 'limits.yaml', line: 1 };

export function limit(requestsPerUnit: number, unit: Unit = 'minute', more: Partial<Limit> = {}): Limit {
  return { unit, requestsPerUnit, unlimited: false, name: undefined, ...more };
}

export const unlimited: Limit = { unit: 'second', requestsPerUnit: 0, unlimited: true, name: undefined };

/** `at` is `key` or `key=value`. */
export function node(at: string, own?: Limit, ...descriptors: LimitDescriptor[]): LimitDescriptor {
  const [key = '', value] = at.split('=');
  return { key, value, limit: own, descriptors, source };
}

export function domain(name: string, ...descriptors: LimitDescriptor[]): LimitDomain {
  return { domain: name, descriptors, source };
}

/** A descriptor of `key=value` entries. */
export function descriptor(...entries: string[]) {
  return {
    entries: entries.map((text) => {
      const [key = '', value = ''] = text.split('=');
      return { key, value };
    }),
  };
}
