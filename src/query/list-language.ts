/** What a client may ask of a collection: `offset`, `limit`, `fields`, `sort`, `q`, and every field as a filter. */
import type { Fault } from '#http';
import { pointerTo, quote, readArguments, throwFaults } from './arguments.ts';
import { parseFields } from './fields.ts';
import type { Filter, ListQuery, Order, TextSearch } from './list-query.ts';
import { parseWholeNumber } from './scalar.ts';
import { parseSort, withTieBreaker } from './sort.ts';
import type { Column, View, ViewField } from './view.ts';

const limitDefault = 20;
const limitMax = 100;
const searchTextLengthMax = 200;

export interface ListLanguageOptions<Row extends object> {
  /** The columns that `q` looks in. @default none: `q` is unknown */
  readonly searchable?: readonly Column<Row>[];
  /** @default the view's key, ascending */
  readonly defaultSort?: readonly Order<Row>[];
}

/**
 * Reads the search string of a list (with or without `?`). Throws the problem `bad-argument` that names every bad
 * argument at once. `place` is what computed fields are relative to; see `Field`.
 */
export type ListLanguage<Row extends object> = (search: string, place: string) => ListQuery<Row>;

/** Settles the language of one collection, once, at start. Throws a TypeError if a field has the name of an argument. */
export function createListLanguage<Row extends object>(
  view: View<Row>,
  { searchable = [], defaultSort = [] }: ListLanguageOptions<Row> = {},
): ListLanguage<Row> {
  const words = createVocabulary(view, searchable);
  const plain: ListQuery<Row> = {
    offset: 0,
    limit: limitDefault,
    fields: undefined,
    filters: Object.freeze([]),
    search: undefined,
    sort: withTieBreaker(defaultSort, view.key),
  };
  Object.freeze(plain);
  return function parseList(search, place) {
    if (search === '' || search === '?') return plain;
    const faults: Fault[] = [];
    const draft: Draft<Row> = { ...plain, filters: [] };
    for (const [name, value] of readArguments(search, faults)) {
      const word = words.get(name);
      const detail = word === undefined ? unknownArgument(name, words) : word(value, draft, place);
      if (detail !== undefined) faults.push({ pointer: pointerTo(name), detail });
    }
    throwFaults(faults);
    return Object.freeze({ ...draft, filters: Object.freeze(draft.filters) });
  };
}

/** A list query in the making. */
interface Draft<Row extends object> {
  offset: number;
  limit: number;
  fields: readonly string[] | undefined;
  filters: Filter<Row>[];
  search: TextSearch<Row> | undefined;
  sort: readonly Order<Row>[];
}

/** Puts the value of an argument into the draft, or says what is wrong with it. */
type Word<Row extends object> = (value: string, draft: Draft<Row>, place: string) => string | undefined;

function createVocabulary<Row extends object>(
  view: View<Row>,
  searchable: readonly Column<Row>[],
): ReadonlyMap<string, Word<Row>> {
  const words = new Map<string, Word<Row>>([
    ['offset', readOffset],
    ['limit', readLimit],
    ['fields', createFieldsWord(view)],
    ['sort', createSortWord(view)],
    ...(searchable.length === 0 ? [] : [['q', createSearchWord(searchable)] as const]),
  ]);
  for (const field of view.list) {
    if (words.has(field.name)) throw new TypeError(`a field named ${field.name} hides the argument of that name`);
    words.set(field.name, createFilterWord(field));
  }
  return words;
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

function unknownArgument(name: string, words: ReadonlyMap<string, unknown>): string {
  return `${quote(name)} is no argument here; known: ${[...words.keys()].join(', ')}`;
}
