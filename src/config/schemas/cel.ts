/** Rules between the fields of a map in CEL, the language in which Kubernetes checks them. */
import { type Fields, isMap } from '#foundation';
import type { JsonSchema } from '../fields/json-schema.ts';

interface CelRule {
  readonly rule: string;
  readonly message: string;
}

/** Returns the rules of a map that have a message, as far as `fields`, the structural schemas, let CEL read the values. */
export function rulesOf({ allOf }: JsonSchema, fields: Fields): readonly CelRule[] {
  const rules: readonly JsonSchema[] = Array.isArray(allOf) ? allOf : [];
  return rules.flatMap((one) => {
    const rule = conditionOf(one, fields);
    const { errorMessage: message } = one;
    return rule !== undefined && typeof message === 'string' ? { rule: withoutParentheses(rule), message } : [];
  });
}

/** Undefined if CEL cannot read one of the values. Has parentheses around several parts. */
type Condition = string | undefined;

function conditionOf(schema: JsonSchema, fields: Fields): Condition {
  const { not, anyOf, allOf, required, properties, dependencies } = schema;
  const names: readonly string[] = Array.isArray(required) ? required : [];
  const parts = [
    ...names.map((name) => present(name, fields)),
    ...Object.entries(Object(properties)).map(([name, value]) =>
      propertyOf(name, value, { fields, isRequired: names.includes(name) }),
    ),
    ...Object.entries(Object(dependencies)).map(([name, then]) => {
      const condition = conditionOf(Array.isArray(then) ? { required: then } : Object(then), fields);
      return joined([negated(present(name, fields)), condition], '||');
    }),
    ...(Array.isArray(allOf) ? allOf.map((one) => conditionOf(one, fields)) : []),
    ...(Array.isArray(anyOf)
      ? [
          joined(
            anyOf.map((one) => conditionOf(one, fields)),
            '||',
          ),
        ]
      : []),
    ...(isMap(not) ? [negated(conditionOf(not, fields))] : []),
  ];
  return joined(parts, '&&');
}

function joined(parts: readonly Condition[], operator: '&&' | '||'): Condition {
  if (parts.includes(undefined)) return undefined;
  return parts.length === 1 ? parts[0] : `(${parts.join(` ${operator} `)})`;
}

function negated(condition: Condition): Condition {
  return condition === undefined ? undefined : `!${condition}`;
}

/** Removes those around the whole, which begin with the first character and end with the last. */
function withoutParentheses(condition: string): string {
  let depth = 0;
  const end = Array.from(condition).findIndex((character) => {
    depth += { '(': 1, ')': -1 }[character] ?? 0;
    return depth === 0;
  });
  return condition.startsWith('(') && end === condition.length - 1 ? condition.slice(1, -1) : condition;
}

function present(name: string, fields: Fields): Condition {
  return isReadable(fields[name]) ? `has(self.${name})` : undefined;
}

/** Values without a type are out of reach, and so are lists and maps of them. */
function isReadable(schema: unknown): boolean {
  const { type, properties, items, additionalProperties, 'x-kubernetes-int-or-string': isMixed } = Object(schema);
  if (type === 'array') return isReadable(items);
  if (type === 'object') return properties !== undefined || isReadable(additionalProperties);
  return type !== undefined || isMixed === true;
}

interface Property {
  readonly fields: Fields;
  readonly isRequired: boolean;
}

function propertyOf(name: string, schema: unknown, { fields, isRequired }: Property): Condition {
  const given = present(name, fields);
  if (given === undefined || schema === false) return negated(given);
  const value = joined(valueConditions(`self.${name}`, Object(schema)), '&&');
  return isRequired ? value : joined([negated(given), value], '||');
}

function valueConditions(value: string, { const: only, pattern, minimum, allOf, not }: JsonSchema): Condition[] {
  const equal = typeof only === 'boolean' ? `${only ? '' : '!'}${value}` : `${value} == ${JSON.stringify(only)}`;
  return [
    ...(only === undefined ? [] : [equal]),
    ...(typeof minimum === 'number' ? [`${value} >= ${minimum}`] : []),
    ...(typeof pattern === 'string' ? [`${value}.matches(${JSON.stringify(pattern)})`] : []),
    ...(isMap(not) ? valueConditions(value, not).map(negated) : []),
    ...(Array.isArray(allOf) ? allOf.flatMap((one) => valueConditions(value, one)) : []),
  ];
}
