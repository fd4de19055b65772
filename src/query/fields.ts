/** The argument `fields`: a comma-separated list of public names, for a partial item. */
import { quote } from './arguments.ts';
import type { View } from './view.ts';

/** The list, or what is wrong with it. */
export type FieldsReading =
  | { readonly ok: true; readonly fields: readonly string[] | undefined }
  | { readonly ok: false; readonly detail: string };

/** `id,status` as names in the view's order, each once; `*`, or every name, is undefined: all of them. */
export function parseFields<Row extends object>(view: View<Row>, text: string): FieldsReading {
  const asked = new Set(text.split(','));
  const unknown = [...asked].filter((name) => name !== '*' && !view.shown.has(name));
  if (unknown.length > 0) return { ok: false, detail: unknownFields(view.shown, unknown) };
  if (asked.has('*') || asked.size === view.shown.size) return { ok: true, fields: undefined };
  const names = [...view.shown.keys()].filter((name) => asked.has(name));
  return { ok: true, fields: Object.freeze(names) };
}

/** One sentence for `fields` and `sort` alike; a long list of inventions is not said back whole. */
export function unknownFields(known: ReadonlyMap<string, unknown>, unknown: readonly string[]): string {
  const named = unknown.slice(0, 5).map(quote).join(', ');
  const noun = unknown.length === 1 ? 'is no field' : 'are no fields';
  return `${named}${unknown.length > 5 ? ' and others' : ''} ${noun}; known: ${[...known.keys()].join(', ')}`;
}
