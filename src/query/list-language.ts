/** What a client may ask of a collection: a page by `offset` or `after`, `fields`, `sort`, `q`, and every field as a filter. */
import type { z } from 'zod';
import type { Fault } from '#http';
import { pointerTo, quote, readArguments, throwFaults } from './arguments.ts';
import { parseCursor } from './cursor.ts';
import type { ListQuery, Order } from './list-query.ts';
import { createVocabulary, type Draft, type Word } from './list-words.ts';
import { createOwnReader, type OwnArguments } from './own-arguments.ts';
import type { Scalar } from './scalar.ts';
import { limitDefault, listArguments } from './schemas.ts';
import { settleSort } from './sort.ts';
import type { Column, View } from './view.ts';

export interface ListLanguageOptions<Row extends object, Own = unknown> {
  /** The columns that `q` looks in. @default none: `q` is unknown */
  readonly searchable?: readonly Column<Row>[];
  /** Of columns that the view shows. @default the view's key, ascending */
  readonly defaultSort?: readonly Order<Row>[];
  /** @default no arguments beside those of every list */
  readonly own?: OwnArguments<Own>;
}

/**
 * Reads the search string of a list (with or without `?`). Throws the problem `bad-argument` that names every bad
 * argument at once. `place` is what computed fields are relative to; see `Field`.
 */
export interface ListLanguage<Row extends object, Own = unknown> {
  (search: string, place: string): ListQuery<Row, Own>;
  /** Its arguments, each with what it may be, to describe them. */
  readonly schema: () => z.ZodObject;
}

/** Settles the language of one collection, once, at start. Throws a TypeError if a field has the name of an argument. */
export function createListLanguage<Row extends object, Own = unknown>(
  view: View<Row>,
  { searchable = [], defaultSort = [], own }: ListLanguageOptions<Row, Own> = {},
): ListLanguage<Row, Own> {
  const reader = own && createOwnReader(own);
  const words = createVocabulary(view, searchable, reader);
  const plain: ListQuery<Row, Own> = {
    offset: 0,
    limit: limitDefault,
    fields: undefined,
    filters: Object.freeze([]),
    search: undefined,
    sort: settleSort(view, defaultSort),
    ...(reader && { own: reader.plain }),
  };
  Object.freeze(plain);
  return Object.assign(parseList, { schema: () => listArguments(view, searchable, own) });

  function parseList(search: string, place: string): ListQuery<Row, Own> {
    if (search === '' || search === '?') return plain;
    const faults: Fault[] = [];
    const values = readArguments(search, faults);
    const { own: texts, ...draft } = readWords(words, values, { ...plain, filters: [], own: {} }, place, faults);
    const after = readAfter(view, values, draft.sort, place, faults);
    const given = reader?.read(texts, faults);
    throwFaults(faults);
    return Object.freeze({
      ...draft,
      filters: Object.freeze(draft.filters),
      ...(after && { after }),
      ...(given !== undefined && { own: given }),
    });
  }
}

function readWords<Row extends object>(
  words: ReadonlyMap<string, Word<Row>>,
  values: ReadonlyMap<string, string>,
  draft: Draft<Row>,
  place: string,
  faults: Fault[],
): Draft<Row> {
  for (const [name, value] of values) {
    const word = words.get(name);
    const detail = word === undefined ? unknownArgument(name, words) : word(value, draft, place);
    if (detail !== undefined) faults.push({ pointer: pointerTo(name), detail });
  }
  return draft;
}

/** Last of all, since a cursor belongs to an order. */
function readAfter<Row extends object>(
  view: View<Row>,
  values: ReadonlyMap<string, string>,
  sort: readonly Order<Row>[],
  place: string,
  faults: Fault[],
): readonly Scalar[] | undefined {
  const text = values.get('after');
  if (text === undefined) return undefined;
  const pointer = pointerTo('after');
  if (values.has('offset')) faults.push({ pointer, detail: 'cannot be combined with offset: send one of the two' });
  const reading = parseCursor(view, sort, text, place);
  if (reading.ok) return reading.values;
  faults.push({ pointer, detail: reading.detail });
  return undefined;
}

function unknownArgument(name: string, words: ReadonlyMap<string, unknown>): string {
  return `${quote(name)} is no argument here; known: ${[...words.keys()].join(', ')}`;
}
