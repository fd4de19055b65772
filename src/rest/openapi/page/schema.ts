/** Resolves the schemas of an OpenAPI document, names their types, and builds examples of their values. */

/** The part of a JSON Schema (draft 2020-12) that our documents use. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly deprecated?: boolean;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
  readonly exclusiveMaximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly pattern?: string;
}

/** The schemas that others can refer to, by name. */
export type Schemas = Readonly<Record<string, Schema>>;

/**
 * Returns the schema without `$ref` and `allOf`: what they contain is merged into it. Members beside a reference take
 * precedence over those of its target.
 */
export function resolve(schema: Schema, schemas: Schemas): Schema {
  const { $ref, allOf, ...own } = schema;
  const target = $ref === undefined ? undefined : schemas[nameOf($ref)];
  if (target !== undefined) return { ...resolve(target, schemas), ...own };
  if (allOf === undefined) return own;
  return [...allOf.map((part) => resolve(part, schemas)), own].reduce(merge, {});
}

function merge(one: Schema, other: Schema): Schema {
  const properties = { ...one.properties, ...other.properties };
  const required = [...(one.required ?? []), ...(other.required ?? [])];
  return { ...one, ...other, ...(Object.keys(properties).length > 0 && { properties, required }) };
}

/** The last part of a reference is the name. */
export function nameOf(reference: string): string {
  return reference.split('/').at(-1) ?? '';
}

/** Returns the alternatives of a schema, or only the schema itself. */
function alternativesOf(schema: Schema): readonly Schema[] {
  return schema.anyOf ?? schema.oneOf ?? [schema];
}

/** A schema may contain itself. Deeper types are not named, and deeper values are left out. */
const depthMax = { types: 2, values: 8 };

/** Names the type of a value in a few words: `string (date)`, `array of object`. */
export function typeName(schema: Schema, schemas: Schemas, depth = 0): string {
  if (depth > depthMax.types) return 'any';
  const alternatives = alternativesOf(resolve(schema, schemas));
  const names = alternatives.map((one) => simpleTypeName(resolve(one, schemas), schemas, depth));
  return [...new Set(names)].join(' or ');
}

function simpleTypeName(schema: Schema, schemas: Schemas, depth: number): string {
  const { type = typeOfValue(schema.const ?? schema.enum?.[0]), format, items } = schema;
  if (type === 'array' && items !== undefined) return `array of ${typeName(items, schemas, depth + 1)}`;
  const name = typeof type === 'string' ? type : type.join(' or ');
  return format === undefined || format.startsWith('int') ? name : `${name} (${format})`;
}

function typeOfValue(value: unknown): string {
  return value === undefined ? 'any' : typeof value;
}

/** Returns the schema of the objects that a value consists of: the value itself, or the items of a list. */
export function objectIn(schema: Schema, schemas: Schemas, depth = 0): Schema | undefined {
  if (depth > depthMax.values) return undefined;
  const found = resolve(schema, schemas);
  if (found.properties !== undefined) return found;
  const inner = found.items === undefined ? alternativesOf(found).filter((one) => one !== found) : [found.items];
  for (const one of inner) {
    const object = objectIn(one, schemas, depth + 1);
    if (object !== undefined) return object;
  }
  return undefined;
}

/** Builds a value that the schema describes: its own example if it has one, otherwise one that is made of its parts. */
export function exampleOf(given: Schema, schemas: Schemas, depth = 0): unknown {
  const schema = resolve(given, schemas);
  const known = [...(schema.examples ?? []), schema.default, schema.const, ...(schema.enum ?? [])];
  const found = known.find((value) => value !== undefined);
  if (found !== undefined) return found;
  const { properties, items, type } = schema;
  const [first = schema] = alternativesOf(schema);
  if (first !== schema && depth <= depthMax.values) return exampleOf(first, schemas, depth + 1);
  if (depth > depthMax.values) return null;
  if (properties !== undefined)
    return Object.fromEntries(
      Object.entries(properties).map(([name, property]) => [name, exampleOf(property, schemas, depth + 1)]),
    );
  if (items !== undefined) return [exampleOf(items, schemas, depth + 1)];
  return simpleExample(typeof type === 'string' ? type : type?.[0], schema);
}

function simpleExample(type: string | undefined, { format = '', minimum = 1 }: Schema): unknown {
  if (type === 'integer' || type === 'number') return Math.max(1, minimum);
  if (type === 'boolean') return true;
  if (type === 'array') return [];
  if (type === 'null') return null;
  return type === 'string' ? (examplesByFormat[format] ?? 'text') : {};
}

const examplesByFormat: Readonly<Record<string, string>> = {
  date: '2031-05-12',
  'date-time': '2031-05-12T09:00:00Z',
  email: 'ann@example.com',
  uri: 'https://example.com/',
  'uri-reference': '/',
  uuid: '0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01',
};
