/** The words of the language: what each argument of a list means, one by one. */
import { parseFields } from './fields.ts';
import type { Filter, Order, TextSearch } from './list-query.ts';
import type { OwnReader } from './own-arguments.ts';
import { parseWholeNumber } from './scalar.ts';
import { parseSort } from './sort.ts';
import type { Column, View, ViewField } from './view.ts';

export const limitMax = 100;
export const searchTextLengthMax = 200;

/** A list query in the making. */
export interface Draft<Row extends object> {
  offset: number;
  limit: number;
  isCounted?: boolean;
  fields: readonly string[] | undefined;
  filters: Filter<Row>[];
  search: TextSearch<Row> | undefined;
  sort: readonly Order<Row>[];
  readonly own: Record<string, string>;
}

/** Puts the value of an argument into the draft, or says what is wrong with it. */
export type Word<Row extends object> = (value: string, draft: Draft<Row>, place: string) => string | undefined;

/** The word for each argument that the list takes, by name. Throws a TypeError if two want the same name. */
export function createVocabulary<Row extends object>(
  view: View<Row>,
  searchable: readonly Column<Row>[],
  reader: OwnReader<unknown> | undefined,
): ReadonlyMap<string, Word<Row>> {
  const words = new Map<string, Word<Row>>([
    ['offset', readOffset],
    ['limit', readLimit],
    ['fields', createFieldsWord(view)],
    ['sort', createSortWord(view)],
    ['after', () => undefined],
    ['total', readTotal],
    ...(searchable.length === 0 ? [] : [['q', createSearchWord(searchable)] as const]),
  ]);
  for (const field of view.list) claim(words, field.name, createFilterWord(field));
  for (const name of reader?.names ?? []) claim(words, name, createOwnWord(name));
  return words;
}

function claim<Row extends object>(words: Map<string, Word<Row>>, name: string, word: Word<Row>): void {
  if (words.has(name)) throw new TypeError(`a field named ${name} hides the argument of that name`);
  words.set(name, word);
}

function createOwnWord<Row extends object>(name: string): Word<Row> {
  return (value, draft) => {
    draft.own[name] = value;
    return undefined;
  };
}

function readTotal(value: string, draft: { isCounted?: boolean }): string | undefined {
  if (value !== 'true' && value !== 'false') return 'must be true or false';
  if (value === 'false') draft.isCounted = false;
  return undefined;
}

function readOffset(value: string, draft: { offset: number }): string | undefined {
  const offset = parseWholeNumber(value);
  if (!Number.isSafeInteger(offset)) return `must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`;
  draft.offset = offset ?? 0;
  return undefined;
}

/** More than the maximum is taken as the maximum, and the answer's `limit` says so. */
function readLimit(value: string, draft: { limit: number }): string | undefined {
  const limit = parseWholeNumber(value);
  if (limit === undefined || limit === 0) return `must be a whole number from 1 to ${limitMax}`;
  draft.limit = Math.min(limit, limitMax);
  return undefined;
}

function createFieldsWord<Row extends object>(view: View<Row>): Word<Row> {
  return (value, draft) => {
    const reading = parseFields(view, value);
    if (!reading.ok) return reading.detail;
    draft.fields = reading.fields;
    return undefined;
  };
}

function createSortWord<Row extends object>(view: View<Row>): Word<Row> {
  return (value, draft) => {
    const reading = parseSort(view, value);
    if (!reading.ok) return reading.detail;
    draft.sort = reading.sort;
    return undefined;
  };
}

function createSearchWord<Row extends object>(searchable: readonly Column<Row>[]): Word<Row> {
  const columns = Object.freeze([...searchable]);
  return (value, draft) => {
    if (value.length > searchTextLengthMax) return `must be at most ${searchTextLengthMax} characters`;
    draft.search = Object.freeze({ text: value, columns });
    return undefined;
  };
}

function createFilterWord<Row extends object>({ column, read }: ViewField<Row>): Word<Row> {
  return (value, draft, place) => {
    const reading = read(value, place);
    if (!reading.ok) return reading.detail;
    draft.filters.push(Object.freeze({ column, value: reading.value }));
    return undefined;
  };
}
