/** Renders parameters, headers and the fields of a schema as name-value lists. */
import { blockMarkup, html, inlineMarkup, type Markup } from '#http';
import type { PageContext } from './page-document.ts';
import { objectIn, resolve, type Schema, type Schemas, typeName } from './schema.ts';

/** A parameter, a header or a field. */
export interface NamedValue {
  readonly name: string;
  readonly schema: Schema;
  /** @default that of the schema */
  readonly description?: string;
  readonly required?: boolean;
  readonly deprecated?: boolean;
}

export function valueList(values: readonly NamedValue[], context: Pick<PageContext, 'schemas'>): Markup {
  return listAt(values, context.schemas, 0);
}

/** The fields of the objects that a value consists of, such as those of the items of a list. */
export function fieldsOf(schema: Schema, schemas: Schemas): readonly NamedValue[] {
  const { properties = {}, required = [] } = objectIn(schema, schemas) ?? {};
  return Object.entries(properties).map(([name, property]) => ({
    name,
    schema: property,
    required: required.includes(name),
  }));
}

/** Deeper fields are left out, because a schema may contain itself. */
const depthMax = 4;

function listAt(values: readonly NamedValue[], schemas: Schemas, depth: number): Markup {
  return html`<dl class="values">${values.map((value) => row(value, schemas, depth))}</dl>`;
}

function row({ name, schema, description, required, deprecated }: NamedValue, schemas: Schemas, depth: number): Markup {
  const found = resolve(schema, schemas);
  const text = description ?? found.description;
  const inner = depth < depthMax ? fieldsOf(schema, schemas) : [];
  return html`<div><dt><code>${name}</code> <span class="type">${typeName(schema, schemas)}</span>${required === true && html` <b class="required">required</b>`}${(deprecated ?? found.deprecated) === true && deprecatedMark}</dt>
<dd>${text !== undefined && blockMarkup(text)}${notes(found, schemas)}${inner.length > 0 && html`<details><summary>${inner.length} fields of <code>${name}</code></summary>${listAt(inner, schemas, depth + 1)}</details>`}</dd></div>
`;
}

export const deprecatedMark = html` <b class="chip deprecated">deprecated</b>`;

/** Up to so many values are listed in a line. Longer lists are collapsed. */
const valuesInLineMax = 8;

function notes(schema: Schema, schemas: Schemas): Markup {
  const values = allowedValues(schema, schemas);
  const list = html`${values.map((value, index) => html`${index > 0 && ', '}<code>${textOf(value)}</code>`)}`;
  const bounds = boundsOf(schema);
  const { default: byDefault, pattern, examples: [example] = [] } = schema;
  const isSimple = typeof example !== 'object';
  return html`${values.length > valuesInLineMax ? html`<details><summary>${values.length} values</summary>${list}</details>` : values.length > 0 && html`<p>One of ${list}.</p>`}
${bounds !== '' && html`<p class="note">${bounds}</p>`}${pattern !== undefined && html`<p class="note">Matches <code>${pattern}</code></p>`}${byDefault !== undefined && html`<p class="note">Default <code>${textOf(byDefault)}</code></p>`}${example !== undefined && isSimple && values.length === 0 && html`<p class="note">Example <code>${textOf(example)}</code></p>`}`;
}

/** The values of an enumeration, or those of the items of a list. */
function allowedValues({ enum: values, items, const: only }: Schema, schemas: Schemas): readonly unknown[] {
  if (values !== undefined) return values;
  if (only !== undefined) return [only];
  return (items && resolve(items, schemas).enum) ?? [];
}

/** Describes the bounds of a value in words, such as `1 to 20` or `up to 200 characters`. */
function boundsOf({ minimum, maximum, minLength, maxLength, minItems, maxItems }: Schema): string {
  const bounds = [
    rangeOf(minimum, maximum, ''),
    rangeOf(minLength === 1 ? undefined : minLength, maxLength, ' characters'),
    rangeOf(minItems === 1 ? undefined : minItems, maxItems, ' items'),
  ];
  const text = bounds.filter((bound) => bound !== undefined).join(', ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function rangeOf(min: number | undefined, max: number | undefined, unit: string): string | undefined {
  if (min !== undefined && max !== undefined) return min === max ? `exactly ${min}${unit}` : `${min} to ${max}${unit}`;
  if (min !== undefined) return `at least ${min}${unit}`;
  return max === undefined ? undefined : `up to ${max}${unit}`;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The summary of a collapsed part. */
export function partSummary(title: string, note = ''): Markup {
  return html`<summary>${inlineMarkup(title)}${note !== '' && html` <span class="note">${note}</span>`}</summary>`;
}
