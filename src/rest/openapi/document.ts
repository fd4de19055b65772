/** Generates an app's OpenAPI 3.1 document from the schemas that validate requests and describe responses. */
import { z } from 'zod';
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiOverride,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponseObject,
} from 'zod-openapi';
import { jsonTypes, nodeHttp, type ProblemPages, type ProblemTable, patchTypes, type Representations } from '#http';
import { commonHeaders, type Operation, type Problems, type Route } from '../operation.ts';
import {
  contentOf,
  createDocumentSchemas,
  createProblemResponseDocs,
  type DocumentSchemas,
  type ProblemResponseDocs,
} from './components.ts';

/** Describes an app in its OpenAPI document. Texts are in CommonMark. */
export interface ApiInfo {
  readonly title: string;
  /** The version of the interface, not of the code. It changes when clients have to change. */
  readonly version: string;
  readonly description: string;
  /** Descriptions of route groups, by the first word of their path, or `''` if it has none. @default no descriptions */
  readonly groups?: Readonly<Record<string, string>>;
  /** Problems that every route may have. @default none */
  readonly problems?: Problems;
  /** Whether every route requires Basic credentials. @default false */
  readonly signedIn?: boolean;
  /** Credentials in the examples of the page. @default 'user:password' */
  readonly exampleCredentials?: string;
  /** @default none */
  readonly license?: { readonly name: string; readonly identifier?: string; readonly url?: string };
}

export type OpenApiDocument = ReturnType<typeof createDocument>;

export interface DocumentOptions {
  readonly info: ApiInfo;
  readonly routes: readonly Route[];
  /** The problems that the app has defined. */
  readonly kinds: ProblemTable;
  readonly representations: Representations;
  /** The absolute URL of the app's `/`. */
  readonly server: string;
  /** Undefined if errors have no `info_url`. */
  readonly problemPages: ProblemPages | undefined;
  /** Whether the gateway announces that this version is deprecated. */
  readonly isDeprecated: boolean;
}

export function createOpenApiDocument(options: DocumentOptions): OpenApiDocument {
  const { info, routes, representations, server, isDeprecated } = options;
  const schemas = createDocumentSchemas();
  const responsesOf = createProblemResponseDocs(options);
  const paths: ZodOpenApiPathsObject = {};
  const bodies = new Set<unknown>();
  for (const { method, path, operation: operationOf } of routes) {
    if (operationOf === undefined) continue;
    const operation = operationOf();
    bodies.add(operation.body);
    const template = path.replace(/:(\w+)/g, '{$1}');
    const context = { info, tag: tagOf(groupOf(path), info), schemas, responsesOf, representations, method };
    const described = { ...describeOperation(operation, context), ...(isDeprecated && { deprecated: true }) };
    paths[template] = { ...paths[template], [method.toLowerCase()]: described };
  }
  const { title, version, description, license, signedIn = false } = info;
  return createDocument(
    {
      openapi: '3.1.1',
      info: { title, version, description: `${description}\n\n${conventions}`, ...(license && { license }) },
      servers: [{ url: server }],
      tags: tagsOf(options),
      paths,
      security: signedIn ? [{ basic: [] }] : [],
      components: { schemas: schemas.named(), ...(signedIn && { securitySchemes: { basic } }) },
    },
    {
      override(schema) {
        simplifySchema(schema);
        if (bodies.has(schema.zodSchema)) describeDefaults(schema.jsonSchema.properties ?? {});
      },
    },
  );
}

const basic = { type: 'http', scheme: 'basic', description: 'Every request requires these credentials.' } as const;

const conventions = [
  'Responses are JSON or YAML, depending on `Accept`, or HTML for people. Every path that supports GET also supports HEAD and OPTIONS.',
  'Unknown arguments and fields are rejected. Later versions of the server may add fields to items.',
].join(' ');

/** Returns the group of a route, which is the first word of its path. */
function groupOf(path: string): string {
  return /^\/(\w+)/.exec(path)?.[1] ?? '';
}

function tagOf(group: string, { title }: ApiInfo): string {
  return group === '' ? title : group.charAt(0).toUpperCase() + group.slice(1);
}

/** Returns the tags of the route groups. The one with the app's title comes first. */
function tagsOf({ routes, info }: DocumentOptions): { name: string; description?: string }[] {
  const groups = [...new Set(routes.map(({ path }) => groupOf(path)))];
  groups.sort((one, other) => Number(other === '') - Number(one === ''));
  return groups.map((group) => {
    const description = info.groups?.[group];
    return { name: tagOf(group, info), ...(description !== undefined && { description }) };
  });
}

interface DocumentContext {
  readonly info: ApiInfo;
  readonly tag: string;
  readonly schemas: DocumentSchemas;
  readonly responsesOf: ProblemResponseDocs;
  readonly representations: Representations;
  readonly method: string;
}

function describeOperation(operation: Operation, context: DocumentContext): ZodOpenApiOperationObject {
  const { operationId, summary, description, deprecated, path, query, headers, body, problems } = operation;
  const { info, tag, responsesOf, method } = context;
  const bodyTypes = method === 'PATCH' ? patchTypes : jsonTypes;
  const found: Problems = { ...problems, ...info.problems, ...(info.signedIn === true && { unauthorized: {} }) };
  return {
    operationId,
    summary,
    ...(description !== undefined && { description }),
    ...(deprecated === true && { deprecated }),
    tags: [tag],
    requestParams: { path: prefilled(path), query, header: prefilled(headers) },
    ...(body && { requestBody: { required: true, content: contentOf(bodyTypes, () => ({ schema: body })) } }),
    responses: { ...successOf(operation, context), ...responsesOf(found) },
  };
}

/** Copies the first example of each schema to its parameter, from where tools prefill their forms. */
function prefilled({ shape }: z.ZodObject): z.ZodObject {
  const parameters = Object.entries(shape as Readonly<Record<string, z.ZodType>>).map(([name, schema]) => {
    const { examples: [example] = [], param } = schema.meta() ?? {};
    return [name, example === undefined ? schema : schema.meta({ param: { ...param, example } })] as const;
  });
  return z.object(Object.fromEntries(parameters));
}

function successOf(
  { status, returns, shape, responseHeaders }: Operation,
  { schemas, representations, method }: DocumentContext,
) {
  const schema = returns === 'page' ? schemas.page(shape) : schemas.item(shape);
  const success: ZodOpenApiResponseObject = {
    description: String(nodeHttp.STATUS_CODES[status]),
    headers: responseHeaders,
    content: contentOf(representations.types, () => ({ schema })),
  };
  return { [status]: success, ...(method === 'GET' && { 304: notModified }) };
}

const notModified: ZodOpenApiResponseObject = {
  id: 'NotModified',
  description: 'The representation that you have is still current.',
  headers: commonHeaders(),
};

/**
 * Removes noise from the schemas: the bounds of safe integers, and patterns of values with a format, which break clients
 * of the Python generator. Allows additional fields in responses, because clients must accept fields that are added later.
 */
const simplifySchema: ZodOpenApiOverride = ({ jsonSchema, zodSchema, io }) => {
  if (io === 'output' && zodSchema instanceof z.ZodObject) delete jsonSchema.additionalProperties;
  if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.maximum !== 2 ** 31 - 1) return;
  jsonSchema.format = 'int32';
  delete jsonSchema.maximum;
  if (jsonSchema.minimum === -(2 ** 31)) delete jsonSchema.minimum;
};

/** Describes the defaults of a request's fields in words: openapi-typescript requires clients to send a field with one. */
function describeDefaults(
  properties: NonNullable<Parameters<ZodOpenApiOverride>[0]['jsonSchema']['properties']>,
): void {
  for (const property of Object.values(properties)) {
    if (typeof property === 'boolean' || property.default === undefined) continue;
    const text = `By default \`${JSON.stringify(property.default)}\`.`;
    property.description = property.description === undefined ? text : `${property.description} ${text}`;
    delete property.default;
  }
}
