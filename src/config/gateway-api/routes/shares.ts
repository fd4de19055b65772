/** How a rule shares the requests that it matches among its backends, and which of them it copies. */
import type { BackendSpec, MirrorSpec } from '../specs.ts';
import type { Problem } from '../status.ts';
import type { Backend } from './backends.ts';
import { noFilters, type ReadFilters, readFilters } from './filters.ts';

export type BackendOf = (spec: BackendSpec) => Backend;

/** A part of the requests for a match, and where it goes. */
export interface Share {
  /** Those that call its backend. None if it has a problem, or calls nothing. */
  readonly fields: Readonly<Record<string, unknown>>;
  readonly filters: ReadFilters;
  readonly weight: number | undefined;
  readonly problem: Problem | undefined;
}

/** A redirect calls nothing. */
export const redirectShare: Share = { fields: {}, filters: noFilters, weight: undefined, problem: undefined };

/** A rule may have none on purpose. */
export const noBackend: Problem = {
  reason: 'BackendNotFound',
  message: 'the rule has no backend',
  remedy: 'Add backendRefs.',
};

/** Requests for a backend that cannot be used get 500, as many of them as its weight says. */
export function sharesOf(backends: readonly BackendSpec[] = [], backendOf: BackendOf): readonly Share[] {
  const total = backends.reduce((sum, { weight = 1 }) => sum + weight, 0);
  if (total === 0) return [{ ...redirectShare, problem: noBackend }];
  return backends
    .filter(({ weight = 1 }) => weight > 0)
    .map((backend) => {
      const found = backendOf(backend);
      const { weight = 1, filters } = backend;
      return {
        fields: 'fields' in found ? found.fields : {},
        filters: readFilters(filters, 'backend'),
        weight: weight === total ? undefined : (weight / total) * 100,
        problem: found.problem,
      };
    });
}

/** A mirror that cannot be used gets no copies. */
export function readMirror({ backendRef, percent, fraction }: MirrorSpec, backendOf: BackendOf): ReadMirror {
  const found = backendOf(backendRef);
  if (!('fields' in found)) return { shares: [], problem: found.problem };
  const { numerator = 0, denominator = 100 } = fraction ?? {};
  const weight = fraction === undefined ? percent : Math.min(100, (numerator / denominator) * 100);
  const fields = { ...found.fields, shadow: true };
  const share: Share = { fields, filters: noFilters, weight: weight === 100 ? undefined : weight, problem: undefined };
  return { shares: [share], problem: undefined };
}

export interface ReadMirror {
  readonly shares: readonly Share[];
  readonly problem: Problem | undefined;
}
