/** What a client may ask of a single item: `fields`, and what its service adds. */
import type { Fault } from '#http';
import { pointerTo, quote, readArguments, throwFaults } from './arguments.ts';
import { parseFields } from './fields.ts';
import type { OwnReader } from './own-arguments.ts';
import type { View } from './view.ts';

export interface ItemQuery<Own = unknown> {
  /** Public names in the view's order; undefined: all of them. */
  readonly fields: readonly string[] | undefined;
  /** The service's own arguments, if it has any. */
  readonly own?: Own;
}

/** Reads the search string of an item. Throws the problem `bad-argument` that names every bad argument at once. */
export function parseItemQuery<Row extends object, Own = unknown>(
  view: View<Row>,
  search: string,
  reader?: OwnReader<Own>,
): ItemQuery<Own> {
  if (search === '' || search === '?')
    return reader === undefined ? wholeItem : { fields: undefined, own: reader.plain };
  const faults: Fault[] = [];
  const texts: Record<string, string> = {};
  const values = new Map(readArguments(search, faults));
  for (const name of reader?.names ?? []) {
    const text = values.get(name);
    if (text !== undefined) texts[name] = text;
    values.delete(name);
  }
  const fields = readFields(view, values, reader, faults);
  const own = reader?.read(texts, faults);
  throwFaults(faults);
  return Object.freeze({ fields, ...(own === undefined ? {} : { own }) });
}

/** Every other argument is unknown. */
function readFields<Row extends object>(
  view: View<Row>,
  values: ReadonlyMap<string, string>,
  reader: OwnReader<unknown> | undefined,
  faults: Fault[],
): readonly string[] | undefined {
  let fields: readonly string[] | undefined;
  for (const [name, value] of values) {
    const reading =
      name === 'fields' ? parseFields(view, value) : { ok: false as const, detail: unknownArgument(name, reader) };
    if (reading.ok) fields = reading.fields;
    else faults.push({ pointer: pointerTo(name), detail: reading.detail });
  }
  return fields;
}

const wholeItem: ItemQuery<never> = Object.freeze({ fields: undefined });

function unknownArgument(name: string, reader: OwnReader<unknown> | undefined): string {
  return `${quote(name)} is no argument here; known: ${['fields', ...(reader?.names ?? [])].join(', ')}`;
}
