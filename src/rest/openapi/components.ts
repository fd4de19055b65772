/** The schemas and problem responses of an OpenAPI document. */
import { z } from 'zod';
import type { ZodOpenApiResponseObject } from 'zod-openapi';
import { type ProblemKind, type ProblemPages, type ProblemTable, problems, type Representations } from '#http';
import { type ItemShape, itemSchema } from '#query';
import { header, type Problems } from '../operation.ts';
import { createProblemExample, type ProblemExample } from './problem-examples.ts';

/**
 * The schemas of items and pages. Each is created once per view, to be shared. They describe whole items: a union with the
 * partial ones of the argument `fields` would make every field optional for all clients.
 */
export interface DocumentSchemas {
  readonly item: (shape: ItemShape) => z.ZodType;
  readonly page: (shape: ItemShape) => z.ZodObject;
  readonly named: () => Readonly<Record<string, z.ZodObject>>;
}

export function createDocumentSchemas(): DocumentSchemas {
  const items = new Map<ItemShape, z.ZodObject>();
  const pages = new Map<ItemShape, z.ZodObject>();
  const item = (shape: ItemShape) => getOrCreate(items, shape, () => itemSchema(shape));
  const page = (shape: ItemShape) => getOrCreate(pages, shape, () => pageOf(item(shape)));
  const named = () => ({
    ...namesOf(items, ''),
    ...namesOf(pages, 'Page'),
    ...(pages.size > 0 && { PageLinks: pageLinks }),
    Problem: problemSchema,
    ProblemDetails: problemDetails,
  });
  return Object.freeze({ item, page, named });
}

function getOrCreate<Key, Value>(map: Map<Key, Value>, key: Key, create: () => Value): Value {
  const value = map.get(key) ?? create();
  map.set(key, value);
  return value;
}

/** Returns the schemas by name. The schema of a view without a name is inlined where it is used. */
function namesOf(schemas: ReadonlyMap<ItemShape, z.ZodObject>, suffix: string): Readonly<Record<string, z.ZodObject>> {
  const entries = [...schemas].flatMap(([{ name }, schema]) => (name === undefined ? [] : [[name + suffix, schema]]));
  return Object.fromEntries(entries);
}

const link = z.string().meta({ format: 'uri-reference' });

const pageLinks = z
  .object({
    self: link,
    first: link,
    prev: link.optional().describe('Absent on the first page, and with `after`.'),
    next: link.optional().describe('Absent on the last page.'),
    last: link.optional().describe('Absent with `after` and with `total=false`.'),
  })
  .describe('Links to this and other pages, as absolute paths. They preserve the arguments of the request.');

function pageOf(item: z.ZodType): z.ZodObject {
  return z.object({
    items: z.array(item),
    offset: z.int().min(0).optional().describe('Absent with `after`.'),
    limit: z.int().min(1),
    total: z.int().min(0).optional().describe('The number of items on all pages. Absent with `total=false`.'),
    links: pageLinks,
  });
}

/** The schema of `ErrorBody`. */
const problemSchema = z.object({
  code: z.int().describe('The HTTP status code.'),
  message: z.string().describe('The status and its reason phrase, such as `404: Not Found`.'),
  info_url: z.url().optional().describe('A page about this kind of problem.'),
  detail: z.string().optional().describe('What was wrong with this request.'),
  errors: z
    .array(
      z.object({
        pointer: z
          .string()
          .optional()
          .meta({ description: 'A JSON pointer to the invalid part of the body.', examples: ['/check_in'] }),
        parameter: z
          .string()
          .optional()
          .meta({ description: 'The name of the invalid query argument.', examples: ['limit'] }),
        detail: z.string(),
      }),
    )
    .optional()
    .describe('All errors in the request.'),
});

/** The schema of problem details (RFC 9457). */
const problemDetails = problemSchema.extend({
  type: z.string().meta({ format: 'uri-reference' }),
  title: z.string(),
  status: z.int(),
});

/** Returns the responses by status. Problems with the same status share a response. */
export type ProblemResponseDocs = (found: Problems) => Readonly<Record<string, ZodOpenApiResponseObject>>;

export interface ProblemResponseDocsOptions {
  readonly representations: Representations;
  /** The problems that the app has defined. */
  readonly kinds: ProblemTable;
  /** Undefined if errors have no `info_url`. */
  readonly problemPages: ProblemPages | undefined;
}

/** Creates the problem responses of one document. The same set of problems always refers to the same component. */
export function createProblemResponseDocs(options: ProblemResponseDocsOptions): ProblemResponseDocs {
  const { representations, problemPages } = options;
  const kinds: ProblemTable = { ...problems, ...options.kinds };
  const media: ProblemMedia = {
    types: representations.errorTypes,
    exampleOf: createProblemExample(representations.types, problemPages),
  };
  const responses = new Map<string, ZodOpenApiResponseObject>();
  const others = responseOf(
    media,
    { internal: problems.internal },
    {},
    {
      id: 'OtherProblem',
      description: 'Any other problem, reported by this service or by the gateway.',
    },
  );

  function responseTo(table: ProblemTable, found: Problems): ZodOpenApiResponseObject {
    const slugs = Object.keys(table);
    const options = { description: describeProblems(table), ...headersOf(table) };
    if (slugs.some((slug) => Object.keys(found[slug] ?? {}).length > 0))
      return responseOf(media, table, found, options);
    const id = slugs.map(pascalCase).join('Or');
    return getOrCreate(responses, id, () => responseOf(media, table, {}, { id, ...options }));
  }

  function kindOf(slug: string): ProblemKind {
    const kind = kinds[slug];
    if (kind === undefined)
      throw new TypeError(
        `the documentation names "${slug}", which is not defined: pass the result of defineProblems to the app as \`problems\``,
      );
    return kind;
  }

  return function responsesOf(found) {
    const byStatus = new Map<number, ProblemTable>();
    for (const slug of Object.keys(found).sort()) {
      const kind = kindOf(slug);
      byStatus.set(kind.status, { ...byStatus.get(kind.status), [slug]: kind });
    }
    const entries = [...byStatus].map(([status, table]) => [status, responseTo(table, found)] as const);
    return { ...Object.fromEntries(entries), default: others };
  };
}

interface ProblemMedia {
  readonly types: readonly string[];
  readonly exampleOf: ProblemExample;
}

/** `found` has the shapes of the members that bodies have in addition to the common ones. */
function responseOf(
  { types, exampleOf }: ProblemMedia,
  table: ProblemTable,
  found: Problems,
  options: Omit<ZodOpenApiResponseObject, 'content'>,
): ZodOpenApiResponseObject {
  const shape: z.ZodRawShape = Object.assign({}, ...Object.keys(table).map((slug) => found[slug]));
  const more = z.object(shape);
  const [body, details] =
    Object.keys(shape).length === 0
      ? [problemSchema, problemDetails]
      : [problemSchema.and(more), problemDetails.and(more)];
  const isDetails = (type: string) => type === 'application/problem+json';
  const examplesOf = (type: string) =>
    Object.fromEntries(
      Object.entries(table).map(([slug, kind]) => {
        const { body: example, details: withDetails } = exampleOf(slug, kind, found[slug] ?? {});
        return [slug, { value: isDetails(type) ? withDetails : example }];
      }),
    );
  const content = contentOf(types, (type) => ({
    schema: isDetails(type) ? details : body,
    examples: examplesOf(type),
  }));
  return { ...options, content };
}

/**
 * Returns the OpenAPI content for each media type that programs read. HTML is left out, because the body of every response
 * would also be text for a generated client.
 */
export function contentOf<Media>(types: readonly string[], mediaOf: (type: string) => Media) {
  const entries = types.filter((type) => !type.startsWith('text/')).map((type) => [type, mediaOf(type)] as const);
  return Object.fromEntries(entries);
}

function describeProblems(table: ProblemTable): string {
  const texts = Object.entries(table).map(([slug, { meaning, remedy }]) => `\`${slug}\`: ${meaning} ${remedy}`);
  return texts.length === 1 ? String(texts[0]) : texts.map((one) => `- ${one}`).join('\n');
}

const headersBySlug: Problems = {
  unauthorized: { 'WWW-Authenticate': header(z.string(), 'The authentication scheme to use.') },
  'unsupported-media-type': { Accept: header(z.string(), 'The media types that are supported for the request body.') },
  'too-many-requests': {
    RateLimit: header(z.string().optional(), 'The remaining quota, and when it resets.'),
    'RateLimit-Policy': header(z.string().optional(), 'The limits that apply.'),
  },
};

function headersOf(table: ProblemTable): Pick<ZodOpenApiResponseObject, 'headers'> {
  const own = Object.keys(table).map((slug) => headersBySlug[slug]);
  const shape: z.ZodRawShape = Object.assign({}, retryAfterOf(Object.values(table)), ...own);
  return Object.keys(shape).length === 0 ? {} : { headers: z.object(shape) };
}

/** Requires the header only if every problem of the response has it. */
function retryAfterOf(kinds: readonly ProblemKind[]): z.ZodRawShape {
  const waiting = kinds.filter(({ retryAfterSeconds }) => retryAfterSeconds !== undefined);
  if (waiting.length === 0) return {};
  const seconds = z.int().min(0);
  const schema = waiting.length === kinds.length ? seconds : seconds.optional();
  return { 'Retry-After': header(schema, 'Seconds to wait before trying again.') };
}

function pascalCase(slug: string): string {
  return slug.replace(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase());
}
