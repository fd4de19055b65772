/** Reads one page of a query that has no slots for values. */
import type { SelectQueryBuilder } from 'kysely';
import type { ListQuery } from '#query';
import { createPageReader, type Page } from '../../src/travel/storage/select-page.ts';

export function selectPage<DB, TB extends keyof DB, Row extends object>(
  source: Parameters<typeof createPageReader>[0],
  query: SelectQueryBuilder<DB, TB, Row>,
  list: ListQuery<NoInfer<Row>>,
): Promise<Page<Row>> {
  return createPageReader(source, () => query)(undefined, list);
}
