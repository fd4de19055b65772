/** Routing tables for readings of paths: they find the rules that a service could mean, however a path is written. */
import { mapInTurns, nextTurn } from '#config';
import type { Rule } from './conditions.ts';
import type { ReadingsOf } from './path-readings.ts';
import { createTable, createTableInTurns, type Table } from './table.ts';

/** A rule that ignores case, and has a reading of the original's prefix. */
export interface LenientRule<R extends Rule> extends Rule {
  readonly original: R;
}

/**
 * Usually one table. If the prefixes of several rules have the same reading, such as `/admin` and `/Admin`, a path can
 * mean each of them, so each is in another table.
 */
export type LenientTables<R extends Rule> = readonly Table<LenientRule<R>>[];

export function createLenientTables<R extends Rule>(
  rules: readonly R[],
  readingsOf: (rule: R) => ReturnType<ReadingsOf>,
): LenientTables<R> {
  return rulesByTable(rules.flatMap((rule) => lenientRules(rule, readingsOf))).map((some) => createTable(some));
}

/** Like `createLenientTables`, but requests can run in between. */
export async function createLenientTablesInTurns<R extends Rule>(
  rules: readonly R[],
  readingsOf: (rule: R) => ReturnType<ReadingsOf>,
): Promise<LenientTables<R>> {
  const lenient = await mapInTurns(rules, (rule) => lenientRules(rule, readingsOf));
  await nextTurn();
  const tables: Table<LenientRule<R>>[] = [];
  for (const some of rulesByTable(lenient.flat())) tables.push(await createTableInTurns(some));
  return tables;
}

function rulesByTable<R extends Rule>(lenient: readonly LenientRule<R>[]): readonly (readonly LenientRule<R>[])[] {
  const spellings = new Map<string, string[]>();
  for (const { prefix, original } of lenient) {
    const known = spellings.get(prefix);
    if (known === undefined) spellings.set(prefix, [original.prefix]);
    else if (!known.includes(original.prefix)) known.push(original.prefix);
  }
  const count = [...spellings.values()].reduce((most, { length }) => Math.max(most, length), 1);
  return Array.from({ length: count }, (_, index) =>
    lenient.filter(({ prefix, original }) => {
      const known = spellings.get(prefix) ?? [];
      return original.prefix === (known[index] ?? known[0]);
    }),
  );
}

function lenientRules<R extends Rule>(
  rule: R,
  readingsOf: (rule: R) => ReturnType<ReadingsOf>,
): readonly LenientRule<R>[] {
  const { name, prefix, prefixMatch, host, method, headers, queryParameters, precedence, weight, shadow } = rule;
  const { gatewayRoute } = rule;
  const match = { name, prefixMatch, host, method, headers, queryParameters, precedence, weight, shadow };
  const common = { ...match, gatewayRoute, sticky: undefined, caseSensitive: false, original: rule };
  if (prefixMatch === 'regex') return [{ ...common, prefix, isLenient: true }];
  const readings = [...(readingsOf(rule) ?? [prefix])].filter((reading) => reading === '/' || !reading.endsWith('/'));
  return [...new Set(readings.map((reading) => reading.toLowerCase()))].map((reading) => ({
    ...common,
    prefix: reading,
  }));
}
