/** What a client may ask of a collection: limit, offset, after, total, q and filters, read by one table of arguments. */
import type { z } from 'zod';
import { type Fault, queryFault } from '#http';
import {
  createExtraArguments,
  type ExtraSchema,
  type Parsed,
  readArguments,
  throwFaults,
  unknownArgument,
} from './arguments.ts';
import { parseCursor } from './cursor.ts';
import { defaultOrder, type Order, parseFields, parseSort } from './fields.ts';
import { filterLengthMax, limitDefault, limitMax, listArguments, searchTextLengthMax } from './schemas.ts';
import { type Column, parseWholeNumber, type Scalar, type View, type ViewField } from './view.ts';

/** What a list is asked for, as plain frozen data, in columns of rows instead of public names. */
export interface ListQuery<Row extends object = Readonly<Record<string, Scalar>>, Extra = unknown> {
  /** Rows to skip: a safe integer, 0 or more. */
  readonly offset: number;
  /**
   * Asks for the rows after this one instead: its values of the columns in `sort`, in that order. Empty: from the start.
   * Absent where the client pages by `offset`.
   */
  readonly after?: readonly Scalar[];
  /** Whether to count the rows of all pages. @default true */
  readonly wantsTotal?: boolean;
  /** Rows on a page: 1 to 100. */
  readonly limit: number;
  /** Public names in the view's order; undefined: all of them. */
  readonly fields: readonly string[] | undefined;
  /** All of them must match. */
  readonly filters: readonly Filter<Row>[];
  readonly search: TextSearch<Row> | undefined;
  /** Never empty: it includes a unique column, so that the order is total and pages neither repeat nor skip. */
  readonly sort: readonly Order<Row>[];
  /** The arguments that the service adds, if any. */
  readonly extra?: Extra;
}

/** Equality. */
export interface Filter<Row extends object> {
  readonly column: Column<Row>;
  readonly value: Scalar;
}

/** Text to find anywhere in one of the columns, in any case. */
export interface TextSearch<Row extends object> {
  readonly text: string;
  readonly columns: readonly Column<Row>[];
}

export interface ListOptions<Row extends object, Extra = unknown> {
  /** The columns that `q` searches. @default none: `q` is unknown */
  readonly searchable?: readonly Column<Row>[];
  /** Of columns that the view shows. @default the view's key, ascending */
  readonly defaultSort?: readonly Order<Row>[];
  /** @default no arguments beside those of every list */
  readonly extra?: ExtraSchema<Extra>;
}

/**
 * Reads the search string of a list (with or without `?`). Throws the problem `bad-argument`, which names every bad
 * argument at once. `baseUrl` is the one that computed fields begin with; see `Field`.
 */
export interface ListParser<Row extends object, Extra = unknown> {
  (search: string, baseUrl: string): ListQuery<Row, Extra>;
  /** Its arguments, for the API's description. */
  readonly schema: () => z.ZodObject;
}

/** Makes the parser of one collection, at start. Throws a TypeError if a field has the name of an argument. */
export function createListParser<Row extends object, Extra = unknown>(
  view: View<Row>,
  { searchable = [], defaultSort = [], extra: extraSchema }: ListOptions<Row, Extra> = {},
): ListParser<Row, Extra> {
  const extra = extraSchema && createExtraArguments(extraSchema);
  const readers = createReaders(view, searchable, extra?.names ?? []);
  const defaults: ListQuery<Row, Extra> = Object.freeze({
    offset: 0,
    limit: limitDefault,
    fields: undefined,
    filters: Object.freeze([]),
    search: undefined,
    sort: defaultOrder(view, defaultSort),
    ...(extra && { extra: extra.defaults }),
  });
  return Object.assign(parseList, { schema: () => listArguments(view, searchable, extraSchema) });

  function parseList(search: string, baseUrl: string): ListQuery<Row, Extra> {
    if (search === '' || search === '?') return defaults;
    const faults: Fault[] = [];
    const values = readArguments(search, faults);
    const draft: Draft<Row> = { ...defaults, filters: [], extra: {} };
    fillDraft(draft, readers, values, baseUrl, faults);
    const after = readAfter(view, values, draft.sort, baseUrl, faults);
    const { extra: texts, ...query } = draft;
    const parsed = extra?.read(texts, faults);
    throwFaults(faults);
    return Object.freeze({
      ...query,
      filters: Object.freeze(query.filters),
      ...(after && { after }),
      ...(parsed !== undefined && { extra: parsed }),
    });
  }
}

/** A list query in the making. */
interface Draft<Row extends object> {
  offset: number;
  limit: number;
  wantsTotal?: boolean;
  fields: readonly string[] | undefined;
  filters: Filter<Row>[];
  search: TextSearch<Row> | undefined;
  sort: readonly Order<Row>[];
  /** Texts, by name. */
  readonly extra: Record<string, string>;
}

/** Puts the value of an argument into the draft, or returns what is wrong with it. */
type ArgumentReader<Row extends object> = (value: string, draft: Draft<Row>, baseUrl: string) => string | undefined;

/** By the argument's name. Throws a TypeError if two have the same name. */
function createReaders<Row extends object>(
  view: View<Row>,
  searchable: readonly Column<Row>[],
  extraNames: readonly string[],
): ReadonlyMap<string, ArgumentReader<Row>> {
  const readers = new Map<string, ArgumentReader<Row>>([
    ['offset', readOffset],
    ['limit', readLimit],
    ['fields', (value, draft) => take(parseFields(view, value), (fields) => Object.assign(draft, { fields }))],
    ['sort', (value, draft) => take(parseSort(view, value), (sort) => Object.assign(draft, { sort }))],
    // Read after all others, since a cursor belongs to an order.
    ['after', () => undefined],
    ['total', readTotal],
    ...(searchable.length === 0 ? [] : [['q', createSearchReader(searchable)] as const]),
  ]);
  for (const field of view.list) add(readers, field.name, createFilterReader(field));
  for (const name of extraNames) add(readers, name, (value, { extra }) => void Object.assign(extra, { [name]: value }));
  return readers;
}

function add<Row extends object>(
  readers: Map<string, ArgumentReader<Row>>,
  name: string,
  reader: ArgumentReader<Row>,
): void {
  if (readers.has(name)) throw new TypeError(`a field named ${name} hides the argument of that name`);
  readers.set(name, reader);
}

function fillDraft<Row extends object>(
  draft: Draft<Row>,
  readers: ReadonlyMap<string, ArgumentReader<Row>>,
  values: ReadonlyMap<string, string>,
  baseUrl: string,
  faults: Fault[],
): void {
  for (const [name, value] of values) {
    const read = readers.get(name);
    const detail = read === undefined ? unknownArgument(name, readers.keys()) : read(value, draft, baseUrl);
    if (detail !== undefined) faults.push(queryFault(name, detail));
  }
}

function take<T>(parsed: Parsed<T>, use: (value: T) => void): string | undefined {
  if (!parsed.ok) return parsed.detail;
  use(parsed.value);
  return undefined;
}

function readOffset(value: string, draft: { offset: number }): string | undefined {
  const offset = parseWholeNumber(value);
  if (!Number.isSafeInteger(offset)) return `must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`;
  draft.offset = offset ?? 0;
  return undefined;
}

/** More than the maximum counts as the maximum; the response's `limit` shows it. */
function readLimit(value: string, draft: { limit: number }): string | undefined {
  const limit = parseWholeNumber(value);
  if (limit === undefined || limit === 0) return `must be a whole number from 1 to ${limitMax}`;
  draft.limit = Math.min(limit, limitMax);
  return undefined;
}

function readTotal(value: string, draft: { wantsTotal?: boolean }): string | undefined {
  if (value !== 'true' && value !== 'false') return 'must be true or false';
  if (value === 'false') draft.wantsTotal = false;
  return undefined;
}

function createSearchReader<Row extends object>(searchable: readonly Column<Row>[]): ArgumentReader<Row> {
  const columns = Object.freeze([...searchable]);
  return (value, draft) => {
    if (value.length > searchTextLengthMax) return `must be at most ${searchTextLengthMax} characters`;
    draft.search = Object.freeze({ text: value, columns });
    return undefined;
  };
}

function createFilterReader<Row extends object>({ column, read }: ViewField<Row>): ArgumentReader<Row> {
  return function readFilter(text, draft, baseUrl) {
    if (text.length > filterLengthMax) return `has more than ${filterLengthMax} characters`;
    return take(read(text, baseUrl), (value) => draft.filters.push(Object.freeze({ column, value })));
  };
}

function readAfter<Row extends object>(
  view: View<Row>,
  values: ReadonlyMap<string, string>,
  sort: readonly Order<Row>[],
  baseUrl: string,
  faults: Fault[],
): readonly Scalar[] | undefined {
  const text = values.get('after');
  if (text === undefined) return undefined;
  if (values.has('offset')) faults.push(queryFault('after', 'cannot be combined with offset: send one of the two'));
  const parsed = parseCursor(view, sort, text, baseUrl);
  if (parsed.ok) return parsed.value;
  faults.push(queryFault('after', parsed.detail));
  return undefined;
}
