/** The JSON Schemas of the package, by file, for editors: records, limits, users, demo data and settings. */
import { isMap } from '#foundation';
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

function withSpelledText(schema: unknown, key = ''): unknown {
  if (Array.isArray(schema)) return schema.map((one) => withSpelledText(one));
  if (!isMap(schema)) return schema;
  const whole = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, withSpelledText(value, name)]));
  const types = [schema['type']].flat();
  return limitTextKeys.includes(key) && types.includes('string')
    ? { ...whole, type: [...types, 'number', 'boolean'] }
    : whole;
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
