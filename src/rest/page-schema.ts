/** JSON Schema in words: what a value is, and what an object is made of. */
import { escapeHtml } from '#http';
import { code, definitions, phrase } from './page-text.ts';

/** As much of it as the documents use. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: unknown;
  readonly description?: string;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxLength?: number;
}

/** The fields of an object. */
export function fieldsOf({ properties = {}, required = [] }: Schema): string {
  const rows = Object.entries(properties).map(([name, schema]) => {
    const presence = required.includes(name) ? '' : ', optional';
    return [`${code(name)} <small>${typeOf(schema)}${presence}</small>`, remarksOn(schema)] as const;
  });
  return definitions(rows);
}

/** In a few words: `integer`, `list of Money`. */
export function typeOf(schema: Schema): string {
  const { $ref, anyOf, allOf, items, type = 'anything', format } = schema;
  if ($ref !== undefined) return linkTo($ref);
  const parts = anyOf ?? allOf;
  if (parts !== undefined) return parts.map(typeOf).join(anyOf === undefined ? ' and ' : ' or ');
  const values = 'const' in schema ? [schema.const] : schema.enum;
  if (values !== undefined) return values.map((value) => code(String(value))).join(', ');
  if (items !== undefined) return `list of ${typeOf(items)}`;
  return escapeHtml(format ?? String(type));
}

/** Its description, bounds and default, an example, and the fields of an object without a name. */
export function remarksOn(schema: Schema): string {
  const { description, default: value, examples = [] } = schema;
  const remarks = [
    ...(description === undefined ? [] : [phrase(description)]),
    ...boundsOf(schema),
    ...(value === undefined ? [] : [`Default ${code(String(value))}.`]),
    ...examples.slice(0, 1).map((example) => `Such as ${code(textOf(example))}.`),
  ];
  return `${remarks.join(' ')}${fieldsOf(schema.items ?? schema)}`;
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The end of a reference to a component. */
export function nameOf($ref: string): string {
  return $ref.slice($ref.lastIndexOf('/') + 1);
}

function linkTo($ref: string): string {
  const name = escapeHtml(nameOf($ref));
  return `<a href="#schema-${name}">${name}</a>`;
}

/** Bounds that only say what fits a number are left out. */
function boundsOf({ minimum, maximum, maxLength }: Schema): readonly string[] {
  const isTold = (bound: number | undefined) => bound !== undefined && Math.abs(bound) < 2 ** 31 - 1;
  return [
    ...(isTold(minimum) ? [`At least ${minimum}.`] : []),
    ...(isTold(maximum) ? [`At most ${maximum}.`] : []),
    ...(maxLength === undefined ? [] : [`At most ${maxLength} characters.`]),
  ];
}
