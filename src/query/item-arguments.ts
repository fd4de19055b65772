/** Parses the query string of a single item: `fields`, and the arguments that its service adds. */
import { type Fault, queryFault } from '#http';
import { type ExtraArguments, readArguments, throwFaults, unknownArgument } from './arguments.ts';
import { parseFields } from './fields.ts';
import type { View } from './view.ts';

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
