/** What a client may ask of a single item: `fields`. */
import type { Fault } from '#http';
import { pointerTo, quote, readArguments, throwFaults } from './arguments.ts';
import { parseFields } from './fields.ts';
import type { View } from './view.ts';

export interface ItemQuery {
  /** Public names in the view's order; undefined: all of them. */
  readonly fields: readonly string[] | undefined;
}

/** Reads the search string of an item. Throws the problem `bad-argument` that names every bad argument at once. */
export function parseItemQuery<Row extends object>(view: View<Row>, search: string): ItemQuery {
  if (search === '' || search === '?') return wholeItem;
  const faults: Fault[] = [];
  let fields: readonly string[] | undefined;
  for (const [name, value] of readArguments(search, faults)) {
    const reading =
      name === 'fields' ? parseFields(view, value) : { ok: false as const, detail: unknownArgument(name) };
    if (reading.ok) fields = reading.fields;
    else faults.push({ pointer: pointerTo(name), detail: reading.detail });
  }
  throwFaults(faults);
  return Object.freeze({ fields });
}

const wholeItem: ItemQuery = Object.freeze({ fields: undefined });

function unknownArgument(name: string): string {
  return `${quote(name)} is no argument here; known: fields`;
}
