/** The routes of an app as an OpenAPI 3.1 document, from the schemas that validate requests and describe responses. */
import { z } from 'zod';
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiOverride,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponseObject,
} from 'zod-openapi';
import { nodeHttp, type Representations } from '#http';
import { commonHeaders, type Operation, type Problems, type Route } from '../operation.ts';
import {
  contentOf,
  createDocumentSchemas,
  createProblemAnswers,
  type DocumentSchemas,
  type ProblemAnswers,
} from './components.ts';

/** What an app says about itself. Texts are in CommonMark. */
export interface ApiInfo {
  readonly title: string;
  /** Of the interface, not of the code: it changes when clients have to. */
  readonly version: string;
  readonly description: string;
  /** What its routes are about, by the first word of their path; `''` for those without one. @default not said */
  readonly groups?: Readonly<Record<string, string>>;
  /** Those that any of its routes may have. */
  readonly problems: Problems;
  /** Whether the gateway requires credentials. @default false */
  readonly signedIn?: boolean;
}

export type OpenApiDocument = ReturnType<typeof createDocument>;

export interface DocumentOptions {
  readonly info: ApiInfo;
  readonly routes: readonly Route[];
  readonly representations: Representations;
  /** The absolute URL of what the app calls `/`. */
  readonly server: string;
}

export function createOpenApiDocument(options: DocumentOptions): OpenApiDocument {
  const { info, routes, representations, server } = options;
  const schemas = createDocumentSchemas();
  const answersOf = createProblemAnswers(representations);
  const paths: ZodOpenApiPathsObject = {};
  for (const { method, path, operation } of routes) {
    if (operation === undefined) continue;
    const template = path.replace(/:(\w+)/g, '{$1}');
    const context = { info, tag: tagOf(groupOf(path), info), schemas, answersOf, representations, method };
    paths[template] = { ...paths[template], [method.toLowerCase()]: describe(operation(), context) };
  }
  const { title, version, description, signedIn = false } = info;
  return createDocument(
    {
      openapi: '3.1.1',
      info: { title, version, description: `${description}\n\n${conventions}`, license },
      servers: [{ url: server }],
      tags: tagsOf(options),
      paths,
      security: signedIn ? [{ basic: [] }] : [],
      components: { schemas: schemas.named(), ...(signedIn && { securitySchemes: { basic } }) },
    },
    { override: tidy },
  );
}

/** Of this package. */
const license = { name: 'MIT', identifier: 'MIT' };

const basic = { type: 'http', scheme: 'basic', description: 'Required by the gateway.' } as const;

const conventions = [
  'Responses come as JSON, YAML or HTML, by `Accept`; what takes GET also takes HEAD and OPTIONS.',
  'Unknown arguments and fields are refused. Later versions of the server may add fields to items.',
].join(' ');

/** Routes are grouped by the first word of their path. */
function groupOf(path: string): string {
  return /^\/(\w+)/.exec(path)?.[1] ?? '';
}

function tagOf(group: string, { title }: ApiInfo): string {
  return group === '' ? title : group.charAt(0).toUpperCase() + group.slice(1);
}

/** The group with the app's own title comes first. */
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
  readonly answersOf: ProblemAnswers;
  readonly representations: Representations;
  readonly method: string;
}

function describe(operation: Operation, context: DocumentContext): ZodOpenApiOperationObject {
  const { operationId, summary, description, path, query, headers, body, problems } = operation;
  const { info, tag, answersOf } = context;
  const found: Problems = { ...problems, ...info.problems, ...(info.signedIn === true && { unauthorized: {} }) };
  return {
    operationId,
    summary,
    ...(description !== undefined && { description }),
    tags: [tag],
    requestParams: { path: prefilled(path), query, header: prefilled(headers) },
    ...(body && { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    responses: { ...successOf(operation, context), ...answersOf(found) },
  };
}

/** Copies the first example of each schema to its parameter, where Swagger UI looks for what it fills into a form. */
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
    content: contentOf(representations.types, () => schema),
  };
  return { [status]: success, ...(method === 'GET' && { 304: notModified }) };
}

const notModified: ZodOpenApiResponseObject = {
  id: 'NotModified',
  description: 'What you have is still current.',
  headers: commonHeaders(),
};

/**
 * Removes what clients learn nothing from: bounds of safe integers, and a pattern beside a format, of which it keeps that
 * a time is in UTC. Responses may have further fields, since clients must accept those that are added later.
 */
const tidy: ZodOpenApiOverride = ({ jsonSchema, zodSchema, io }) => {
  if (io === 'output' && zodSchema instanceof z.ZodObject) delete jsonSchema.additionalProperties;
  if (jsonSchema.format === 'date-time' && jsonSchema.pattern !== undefined) jsonSchema.pattern = 'Z$';
  else if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.maximum !== 2 ** 31 - 1) return;
  jsonSchema.format = 'int32';
  delete jsonSchema.maximum;
  if (jsonSchema.minimum === -(2 ** 31)) delete jsonSchema.minimum;
};
