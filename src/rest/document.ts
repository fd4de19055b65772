/** The routes of an app as an OpenAPI 3.1 document, made from the schemas that hold its requests and its answers. */
import { STATUS_CODES } from 'node:http';
import { z } from 'zod';
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiOverride,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponseObject,
} from 'zod-openapi';
import type { Representations } from '#http';
import { contentOf, createProblemAnswers, type ProblemAnswers } from './document-problems.ts';
import { createDocumentSchemas, type DocumentSchemas } from './document-schemas.ts';
import { commonAnswers, type Operation, type Problems } from './operation.ts';
import type { DocumentedRoute } from './route.ts';

/** What an app says of itself. Texts for people are in CommonMark. */
export interface About {
  readonly title: string;
  /** Of the interface and not of the code: it changes when clients have to. */
  readonly version: string;
  readonly description: string;
  /** Those that any of its routes may have. */
  readonly problems: Problems;
  /** Whether the gateway asks who is calling. @default false */
  readonly signedIn?: boolean;
}

export type OpenApiDocument = ReturnType<typeof createDocument>;

export interface DocumentOptions {
  readonly about: About;
  readonly routes: readonly DocumentedRoute[];
  readonly representations: Representations;
  /** The absolute URL of what the app calls `/`. */
  readonly server: string;
}

export function createOpenApiDocument(options: DocumentOptions): OpenApiDocument {
  const { about, routes, representations, server } = options;
  const schemas = createDocumentSchemas();
  const answersOf = createProblemAnswers(representations);
  const paths: ZodOpenApiPathsObject = {};
  for (const { method, path, operation } of routes) {
    const written = path.replace(/:(\w+)/g, '{$1}');
    const described = describe(operation(), {
      about,
      tag: tagOf(path, about),
      schemas,
      answersOf,
      representations,
      method,
    });
    paths[written] = { ...paths[written], [method.toLowerCase()]: described };
  }
  const { title, version, description, signedIn = false } = about;
  return createDocument(
    {
      openapi: '3.1.1',
      info: { title, version, description: `${description}\n\n${conventions}` },
      servers: [{ url: server }],
      tags: tagsOf(options).map((name) => ({ name })),
      paths,
      ...(signedIn && { security: [{ basic: [] }] }),
      components: { schemas: schemas.named(), ...(signedIn && { securitySchemes: { basic } }) },
    },
    { override: tidy },
  );
}

const basic = { type: 'http', scheme: 'basic', description: 'The gateway asks for it.' } as const;

const conventions = [
  'Answers come as JSON, YAML or HTML, by `Accept`; where GET is taken, so are HEAD and OPTIONS.',
  'Arguments and fields that are not known are refused. Items may show more fields one day.',
].join(' ');

/** Routes go together by the first word of their path. */
function tagOf(path: string, { title }: About): string {
  const [, word = ''] = /^\/(\w+)/.exec(path) ?? [];
  return word === '' ? title : word.charAt(0).toUpperCase() + word.slice(1);
}

/** What the app is about comes first. */
function tagsOf({ routes, about }: DocumentOptions): readonly string[] {
  const tags = [...new Set(routes.map(({ path }) => tagOf(path, about)))];
  return tags.sort((one, other) => Number(other === about.title) - Number(one === about.title));
}

interface Surroundings {
  readonly about: About;
  readonly tag: string;
  readonly schemas: DocumentSchemas;
  readonly answersOf: ProblemAnswers;
  readonly representations: Representations;
  readonly method: string;
}

function describe(operation: Operation, around: Surroundings): ZodOpenApiOperationObject {
  const { operationId, summary, description, path, query, headers, body, problems } = operation;
  const { about, tag, answersOf } = around;
  const found: Problems = { ...problems, ...about.problems, ...(about.signedIn === true && { unauthorized: {} }) };
  return {
    operationId,
    summary,
    ...(description !== undefined && { description }),
    tags: [tag],
    requestParams: { path, query, header: headers },
    ...(body && { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    responses: { ...successOf(operation, around), ...answersOf(found) },
  };
}

function successOf({ status, gives, face, answers }: Operation, { schemas, representations, method }: Surroundings) {
  const schema = gives === 'page' ? schemas.page(face) : schemas.item(face);
  const success: ZodOpenApiResponseObject = {
    description: String(STATUS_CODES[status]),
    headers: answers,
    content: contentOf(representations.types, () => schema),
  };
  return { [status]: success, ...(method === 'GET' && { 304: notModified }) };
}

const notModified: ZodOpenApiResponseObject = {
  id: 'NotModified',
  description: 'What you have still holds.',
  headers: commonAnswers(),
};

/**
 * Clients are to bear with fields to come. Where a format is named, a pattern tells nobody more, and neither do the
 * bounds of what a number can hold.
 */
const tidy: ZodOpenApiOverride = ({ jsonSchema, zodSchema, io }) => {
  if (io === 'output' && zodSchema instanceof z.ZodObject) delete jsonSchema.additionalProperties;
  if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.maximum !== 2 ** 31 - 1) return;
  jsonSchema.format = 'int32';
  delete jsonSchema.maximum;
  if (jsonSchema.minimum === -(2 ** 31)) delete jsonSchema.minimum;
};
