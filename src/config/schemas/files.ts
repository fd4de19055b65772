/** The JSON Schemas of the package, by file, for editors: records, limits, users, demo data and settings. */
import { type JsonSchema, jsonSchemaOf } from '../fields/json-schema.ts';
import { domainSchema, limitTextKeys } from '../limits/domains.ts';
import { demoSchema } from '../load.ts';
import type { SettingTable } from '../settings/kinds.ts';
import { usersSchema } from '../users.ts';
import { recordsSchema } from './records.ts';

/** `settings` are those of the product. */
export function schemaFiles(settings: SettingTable): Readonly<Record<string, JsonSchema>> {
  const schemas = {
    records: recordsSchema(),
    limits: limitsSchema(),
    users: jsonSchemaOf(usersSchema),
    demo: jsonSchemaOf(demoSchema),
    settings: settingsSchema(settings),
  };
  const $schema = 'http://json-schema.org/draft-07/schema#';
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => [
      `${name}.json`,
      { $schema, title: `frontdesk: ${name}`, ...schema },
    ]),
  );
}

/** A number or a boolean is text where a file of limits expects text. */
function limitsSchema(): JsonSchema {
  return withSpelledText(jsonSchemaOf(domainSchema)) as JsonSchema;
}

function withSpelledText(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withSpelledText);
  if (typeof schema !== 'object' || schema === null) return schema;
  const inner = Object.entries(schema).map(([key, value]) => [key, withSpelledText(value)]);
  const { properties, ...rest } = Object.fromEntries(inner);
  if (properties === undefined) return rest;
  const spelled = Object.entries<JsonSchema>(properties).map(([name, { type, ...value }]) => [
    name,
    limitTextKeys.includes(name)
      ? { type: [type ?? 'string', 'number', 'boolean'].flat(), ...value }
      : { type, ...value },
  ]);
  return { ...rest, properties: Object.fromEntries(spelled) };
}

/** The options of `createFrontdesk` that are settings: settings.env is no YAML. */
function settingsSchema(table: SettingTable): JsonSchema {
  const properties = Object.entries(table).map(([name, { schema, description, expectsValue, default: value }]) => [
    name,
    {
      ...jsonSchemaOf(schema),
      description: `${description} Takes ${expectsValue}.`,
      ...(value !== undefined && { default: value }),
    },
  ]);
  return { type: 'object', properties: Object.fromEntries(properties), additionalProperties: false };
}
