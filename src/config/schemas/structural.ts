/** Turns JSON Schemas into the structural schemas of Kubernetes, and rules between fields into CEL. */
import { isDeepStrictEqual } from 'node:util';
import { type Fields, isMap } from '#foundation';
import { portForm } from '../fields/addresses.ts';
import type { JsonSchema } from '../fields/json-schema.ts';
import { rulesOf } from './cel.ts';

/** Accepts any value, which the reader checks. */
const anything = { 'x-kubernetes-preserve-unknown-fields': true };

/**
 * Unknown fields need no mention: kubectl refuses them, and others drop them. There are no defaults, because Kubernetes
 * would write them into each object.
 */
export function structural(schema: JsonSchema): JsonSchema {
  const { description } = schema;
  const shown = typeof description === 'string' ? { description: withDefault(description, schema) } : {};
  const { anyOf } = schema;
  if (Array.isArray(anyOf) && anyOf.some((one) => one['type'] !== undefined || one['anyOf'] !== undefined))
    return { ...shown, ...ofAlternatives(anyOf) };
  const { enum: choices } = schema;
  const isMixed = Array.isArray(schema['type']) || (Array.isArray(choices) && new Set(choices.map(typeOf)).size > 1);
  if (isMixed) return { ...shown, ...ofMixed(schema) };
  return { ...shown, ...ofType(schema) };
}

function withDefault(description: string, { default: value }: JsonSchema): string {
  return value === undefined || value === false ? description : `${description} Default: ${JSON.stringify(value)}.`;
}

const typeOf = (value: unknown) => typeof value;

/** Only an integer beside text has a type in Kubernetes. */
function ofMixed({ enum: choices }: JsonSchema): JsonSchema {
  const types = Array.isArray(choices) ? choices.map(typeOf) : [];
  const isKnown = types.length > 0 && types.every((type) => type === 'string' || type === 'number');
  return isKnown ? { 'x-kubernetes-int-or-string': true, enum: choices } : anything;
}

function ofAlternatives(alternatives: readonly JsonSchema[]): JsonSchema {
  const [one, list] = alternatives;
  // A map, or a list with this map, which is how Envoy writes it.
  if (alternatives.length === 2 && one !== undefined && isDeepStrictEqual(list?.['items'], one)) return structural(one);
  const types = alternatives.map(({ type }) => type).sort();
  return isDeepStrictEqual(types, ['integer', 'string']) ? { 'x-kubernetes-int-or-string': true } : anything;
}

function ofType(schema: JsonSchema): JsonSchema {
  const { type, enum: choices, const: only, items } = schema;
  const checks = checksOf(schema);
  if (type === 'object') return { ...checks, ...ofMap(schema) };
  if (type === 'array') return { type, ...checks, items: structural(Object(items)) };
  const values = choices ?? (only === undefined ? undefined : [only]);
  const isWhole = type === 'number' && Array.isArray(values) && values.every(Number.isInteger);
  if (type === undefined && values === undefined) return anything;
  return { type: isWhole ? 'integer' : (type ?? 'string'), ...checks, ...(values !== undefined && { enum: values }) };
}

function ofMap(schema: JsonSchema): JsonSchema {
  const { type, properties, required, additionalProperties } = schema;
  if (!isMap(properties)) return { type, additionalProperties: structural(Object(additionalProperties)) };
  const fields: Fields = Object.fromEntries(
    Object.entries(properties).map(([name, value]) => [name, structural(Object(value))]),
  );
  const rules = rulesOf(schema, fields);
  return {
    type,
    properties: fields,
    ...(Array.isArray(required) && { required }),
    ...(additionalProperties !== false && anything),
    ...(rules.length > 0 && { 'x-kubernetes-validations': rules }),
  };
}

const bounds = ['minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties'];
/** What such keywords apply to. */
const boundsOf: Readonly<Record<string, RegExp>> = {
  integer: /imum$/,
  string: /Length$/,
  array: /Items$/,
  object: /Properties$/,
};

/** Returns the checks of a single value, also those in lists of checks, which Kubernetes allows without types. */
function checksOf(schema: JsonSchema): JsonSchema {
  const { type, pattern, not, allOf, anyOf } = schema;
  const applies = typeof type === 'string' ? boundsOf[type] : /./;
  const found = bounds.filter((name) => schema[name] !== undefined && applies?.test(name));
  const lists = type === 'object' ? {} : { allOf, anyOf };
  return {
    ...Object.fromEntries(found.map((name) => [name, schema[name]])),
    ...(typeof pattern === 'string' && isRe2(pattern) && { pattern: inCluster(pattern) }),
    ...(isMap(not) && type !== 'object' && { not: checksOf(not) }),
    ...Object.fromEntries(
      Object.entries(lists).flatMap(([name, list]) =>
        Array.isArray(list) ? [[name, list.map((one) => ({ ...checksOf(one), ...choicesOf(one) }))]] : [],
      ),
    ),
  };
}

function choicesOf({ enum: choices }: JsonSchema): JsonSchema {
  return choices === undefined ? {} : { enum: choices };
}

/** Kubernetes has no look-around, and writes characters beyond ASCII in another way. */
function isRe2(pattern: string): boolean {
  return !/\(\?<?[=!]|\\u/.test(pattern);
}

/** In a cluster, the port of a service may be a name. */
function inCluster(pattern: string): string {
  return pattern.replace(`:${portForm}`, ':[\\w-]+');
}
