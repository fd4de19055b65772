/** Parses the query strings of collections (paging, filters, search, sort) and of items, each with `fields` and extra arguments. */
import type { z } from 'zod';
import { type Fault, queryFault } from '#http';
import {
  createExtraArguments,
  type ExtraArguments,
  type ExtraSchema,
  type Parsed,
  readArguments,
  throwFaults,
  unknownArgument,
} from './arguments.ts';
import { defaultOrder, type Order, parseFields, parseSort } from './fields.ts';
import { parseCursor } from './paging.ts';
import { filterLengthMax, limitDefault, limitMax, listArguments, searchTextLengthMax } from './schemas.ts';
import { type Column, parseWholeNumber, type Scalar, type View, type ViewField } from './view.ts';

/** A parsed list query as frozen plain data. It refers to the columns of rows, not to public names. */
export interface ListQuery<Row extends object = Readonly<Record<string, Scalar>>, Extra = unknown> {
  /** Rows to skip: a safe integer, 0 or more. */
  readonly offset: number;
  /**
   * Selects the rows after a position, given as that row's values of the columns in `sort`. Empty for the first page.
   * Absent when the client pages by `offset`.
   */
  readonly after?: readonly Scalar[];
  /** Whether to count the rows of all pages. @default true */
  readonly wantsTotal?: boolean;
  /** Rows per page: 1 to 100. */
  readonly limit: number;
  /** Public names in the view's order. Undefined for all fields. */
  readonly fields: readonly string[] | undefined;
  /** A row must match all of them. */
  readonly filters: readonly Filter<Row>[];
  readonly search: TextSearch<Row> | undefined;
  /** Never empty. Includes a unique column, so that the order is total and pages neither repeat nor skip rows. */
  readonly sort: readonly Order<Row>[];
  /** The arguments that the service adds, if any. */
  readonly extra?: Extra;
}

/** Matches rows whose column equals the value. */
export interface Filter<Row extends object> {
  readonly column: Column<Row>;
  readonly value: Scalar;
}

/** Matches rows that contain the text in any of the columns, ignoring case. */
export interface TextSearch<Row extends object> {
  readonly text: string;
  readonly columns: readonly Column<Row>[];
}

export interface ListOptions<Row extends object, Extra = unknown> {
  /** The columns that `q` searches. @default none, and `q` is rejected as unknown */
  readonly searchable?: readonly Column<Row>[];
  /** Its columns must be shown by the view. @default the view's key, ascending */
  readonly defaultSort?: readonly Order<Row>[];
  /** Additional arguments. @default none */
  readonly extra?: ExtraSchema<Extra>;
}

/**
 * Parses the query string of a list, with or without its `?`. Throws a `bad-argument` problem that lists every invalid
 * argument. See `Field` for `baseUrl`.
 */
export interface ListParser<Row extends object, Extra = unknown> {
  (search: string, baseUrl: string): ListQuery<Row, Extra>;
  /** Returns the schema of the arguments, for the OpenAPI document. */
  readonly schema: () => z.ZodObject;
}

/** Creates the parser of a collection. Throws a TypeError if a field has the same name as an argument. */
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
  return Object.assign(parseList, { schema: () => listArguments(view, searchable, extraSchema, defaults.sort) });

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

/** A list query under construction. */
interface Draft<Row extends object> {
  offset: number;
  limit: number;
  wantsTotal?: boolean;
  fields: readonly string[] | undefined;
  filters: Filter<Row>[];
  search: TextSearch<Row> | undefined;
  sort: readonly Order<Row>[];
  /** The unparsed values of the extra arguments, by name. */
  readonly extra: Record<string, string>;
}

/** Adds the value of an argument to the draft, or returns what is wrong with it. */
type ArgumentReader<Row extends object> = (value: string, draft: Draft<Row>, baseUrl: string) => string | undefined;

/** Returns the readers by argument name. Throws a TypeError if two arguments have the same name. */
function createReaders<Row extends object>(
  view: View<Row>,
  searchable: readonly Column<Row>[],
  extraNames: readonly string[],
): ReadonlyMap<string, ArgumentReader<Row>> {
  const readers = new Map<string, ArgumentReader<Row>>([
    ['offset', readOffset],
    ['limit', readLimit],
    ['fields', (value, draft) => applyParsed(parseFields(view, value), (fields) => Object.assign(draft, { fields }))],
    ['sort', (value, draft) => applyParsed(parseSort(view, value), (sort) => Object.assign(draft, { sort }))],
    // `readAfter` reads it after all other arguments, because a cursor depends on the order.
    ['after', () => undefined],
    ['total', readTotal],
    ...(searchable.length === 0 ? [] : [['q', createSearchReader(searchable)] as const]),
  ]);
  for (const field of view.list) addReader(readers, field.name, createFilterReader(field));
  for (const name of extraNames) {
    addReader(readers, name, (value, { extra }) => void Object.assign(extra, { [name]: value }));
  }
  return readers;
}

function addReader<Row extends object>(
  readers: Map<string, ArgumentReader<Row>>,
  name: string,
  reader: ArgumentReader<Row>,
): void {
  if (readers.has(name))
    throw new TypeError(`there is already an argument named ${name}: rename the field or argument`);
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

function applyParsed<T>(parsed: Parsed<T>, apply: (value: T) => void): string | undefined {
  if (!parsed.ok) return parsed.detail;
  apply(parsed.value);
  return undefined;
}

function readOffset(value: string, draft: { offset: number }): string | undefined {
  const offset = parseWholeNumber(value);
  if (!Number.isSafeInteger(offset)) return `must be a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`;
  draft.offset = offset ?? 0;
  return undefined;
}

/** Reduces a limit above the maximum to the maximum. The response reports the reduced limit. */
function readLimit(value: string, draft: { limit: number }): string | undefined {
  const limit = parseWholeNumber(value);
  if (limit === undefined || limit === 0)
    return `must be a whole number, 1 or more; values above ${limitMax} are reduced to ${limitMax}`;
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
    if ([...value].length > searchTextLengthMax) return `has more than ${searchTextLengthMax} characters`;
    draft.search = Object.freeze({ text: value, columns });
    return undefined;
  };
}

function createFilterReader<Row extends object>({ column, read }: ViewField<Row>): ArgumentReader<Row> {
  return function readFilter(text, draft, baseUrl) {
    if ([...text].length > filterLengthMax) return `has more than ${filterLengthMax} characters`;
    return applyParsed(read(text, baseUrl), (value) => draft.filters.push(Object.freeze({ column, value })));
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
  if (values.has('offset')) faults.push(queryFault('after', 'cannot be combined with offset: send only one of them'));
  const parsed = parseCursor(view, sort, text, baseUrl);
  if (parsed.ok) return parsed.value;
  faults.push(queryFault('after', parsed.detail));
  return undefined;
}

export interface ItemQuery<Extra = unknown> {
  /** Public names in the view's order. Undefined for all fields. */
  readonly fields: readonly string[] | undefined;
  /** The arguments that the service adds, if any. */
  readonly extra?: Extra;
}

/** Parses the query string of an item. Throws a `bad-argument` problem that lists every invalid argument. */
export function parseItemQuery<Row extends object, Extra = unknown>(
  view: View<Row>,
  search: string,
  extra?: ExtraArguments<Extra>,
): ItemQuery<Extra> {
  if (search === '' || search === '?')
    return extra === undefined ? wholeItem : { fields: undefined, extra: extra.defaults };
  const faults: Fault[] = [];
  const values = readArguments(search, faults);
  const texts: Record<string, string> = {};
  let fields: readonly string[] | undefined;
  for (const [name, value] of values) {
    if (extra?.names.includes(name)) texts[name] = value;
    else if (name === 'fields') fields = readFields(view, value, faults);
    else faults.push(queryFault(name, unknownArgument(name, ['fields', ...(extra?.names ?? [])])));
  }
  const parsed = extra?.read(texts, faults);
  throwFaults(faults);
  return Object.freeze({ fields, ...(parsed === undefined ? {} : { extra: parsed }) });
}

const wholeItem: ItemQuery<never> = Object.freeze({ fields: undefined });

function readFields<Row extends object>(view: View<Row>, text: string, faults: Fault[]): readonly string[] | undefined {
  const parsed = parseFields(view, text);
  if (parsed.ok) return parsed.value;
  faults.push(queryFault('fields', parsed.detail));
  return undefined;
}
