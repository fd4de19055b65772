/** Schemas and problem responses that all documents share. */
import { z } from 'zod';
import type { ZodOpenApiResponseObject } from 'zod-openapi';
import { type ProblemSlug, problems, type Representations } from '#http';
import { type ItemShape, itemSchema } from '#query';
import { header, type Problems } from '../operation.ts';

/** The schemas of items (whole, or with `fields` a part) and pages, by name. Those of each view are made once, so that the document can refer to them. */
export interface DocumentSchemas {
  readonly item: (shape: ItemShape) => z.ZodType;
  readonly page: (shape: ItemShape) => z.ZodObject;
  readonly named: () => Readonly<Record<string, z.ZodObject>>;
}

export function createDocumentSchemas(): DocumentSchemas {
  const items = new Map<ItemShape, z.ZodObject>();
  const parts = new Map<ItemShape, z.ZodObject>();
  const pages = new Map<ItemShape, z.ZodObject>();
  const whole = (shape: ItemShape) => remember(items, shape, () => itemSchema(shape));
  const part = (shape: ItemShape) =>
    remember(parts, shape, () => whole(shape).partial().describe('With `fields`: these alone.'));
  const item = (shape: ItemShape) => z.union([whole(shape), part(shape)]);
  const page = (shape: ItemShape) => remember(pages, shape, () => pageOf(item(shape)));
  const named = () => ({
    ...namesOf(items, ''),
    ...namesOf(parts, 'Part'),
    ...namesOf(pages, 'Page'),
    ...(pages.size > 0 && { PageLinks: pageLinks }),
    Problem: problemSchema,
    ProblemDetails: problemDetails,
  });
  return Object.freeze({ item, page, named });
}

function remember<Key, Value>(made: Map<Key, Value>, key: Key, make: () => Value): Value {
  const value = made.get(key) ?? make();
  made.set(key, value);
  return value;
}

/** The schema of a view without a name is written where it is used. */
function namesOf(made: ReadonlyMap<ItemShape, z.ZodObject>, suffix: string): Readonly<Record<string, z.ZodObject>> {
  const entries = [...made].flatMap(([{ name }, schema]) => (name === undefined ? [] : [[name + suffix, schema]]));
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
  .describe('Paths on this host, each with every argument of the request.');

function pageOf(item: z.ZodType): z.ZodObject {
  return z.object({
    items: z.array(item),
    offset: z.int().min(0).optional().describe('Absent with `after`.'),
    limit: z.int().min(1),
    total: z.int().min(0).optional().describe('On all pages. Absent with `total=false`.'),
    links: pageLinks,
  });
}

/** `ErrorBody`. */
const problemSchema = z.object({
  code: z.int().describe('The status of the response.'),
  message: z.string().meta({ description: 'The status and its reason phrase.', examples: ['404: Not Found'] }),
  info_url: z.url().optional().describe('A page about this kind of problem.'),
  detail: z.string().optional().describe('What was wrong this time.'),
  errors: z
    .array(
      z.object({
        pointer: z
          .string()
          .optional()
          .meta({ description: 'A JSON pointer into the body.', examples: ['/check_in'] }),
        parameter: z
          .string()
          .optional()
          .meta({ description: 'The name of a query argument.', examples: ['limit'] }),
        detail: z.string(),
      }),
    )
    .optional()
    .describe('Each thing that was wrong.'),
});

/** RFC 9457. */
const problemDetails = problemSchema.extend({
  type: z.string().meta({ format: 'uri-reference' }),
  title: z.string(),
  status: z.int(),
});

/** The responses of problems by status, one for all problems that share it. */
export type ProblemAnswers = (found: Problems) => Readonly<Record<string, ZodOpenApiResponseObject>>;

/** For one document: the same problems are the same component everywhere. */
export function createProblemAnswers({ errorTypes }: Representations): ProblemAnswers {
  const made = new Map<string, ZodOpenApiResponseObject>();
  const others = responseOf(errorTypes, [], {
    id: 'OtherProblem',
    description: 'Any other problem, of this service or of the gateway before it.',
  });

  function answerOf(slugs: readonly ProblemSlug[], found: Problems): ZodOpenApiResponseObject {
    const extension = slugs.map((slug) => found[slug] ?? {});
    const options = { description: describe(slugs), ...headersOf(slugs) };
    if (extension.some((shape) => Object.keys(shape).length > 0)) return responseOf(errorTypes, extension, options);
    const id = slugs.map(pascalCase).join('Or');
    return remember(made, id, () => responseOf(errorTypes, [], { id, ...options }));
  }

  return function answersOf(found) {
    const byStatus = new Map<number, ProblemSlug[]>();
    for (const slug of (Object.keys(found) as ProblemSlug[]).sort()) {
      const { status } = problems[slug];
      byStatus.set(status, [...(byStatus.get(status) ?? []), slug]);
    }
    const answers = [...byStatus].map(([status, slugs]) => [status, answerOf(slugs, found)] as const);
    return { ...Object.fromEntries(answers), default: others };
  };
}

/** `extension`: shapes of the members that its body has beside the usual ones. */
function responseOf(
  types: readonly string[],
  extension: readonly z.ZodRawShape[],
  options: Omit<ZodOpenApiResponseObject, 'content'>,
): ZodOpenApiResponseObject {
  const more = z.object(Object.assign({}, ...extension));
  const [body, details] =
    extension.length === 0 ? [problemSchema, problemDetails] : [problemSchema.and(more), problemDetails.and(more)];
  return { ...options, content: contentOf(types, (type) => (type === 'application/problem+json' ? details : body)) };
}

/** The schema of a page for people is that of text. */
export function contentOf(types: readonly string[], schemaOf: (type: string) => z.ZodType) {
  const entries = types.map((type) => [type, { schema: type.startsWith('text/') ? text : schemaOf(type) }] as const);
  return Object.fromEntries(entries);
}

const text = z.string();

function describe(slugs: readonly ProblemSlug[]): string {
  const texts = slugs.map((slug) => `\`${slug}\`: ${problems[slug].meaning} ${problems[slug].remedy}`);
  return texts.length === 1 ? String(texts[0]) : texts.map((one) => `- ${one}`).join('\n');
}

const retryAfter = header(z.int().min(0), 'In seconds.');
const optionalRetryAfter = header(z.int().min(0).optional(), 'In seconds.');

const headersBySlug: { readonly [Slug in ProblemSlug]?: z.ZodRawShape } = {
  unauthorized: { 'WWW-Authenticate': header(z.string(), 'The kind of credentials to send.') },
  'unsupported-media-type': { Accept: header(z.string(), 'The media types that a body may have.') },
  'idempotency-running': { 'Retry-After': optionalRetryAfter },
  'storage-unavailable': { 'Retry-After': optionalRetryAfter },
  'too-many-requests': {
    'Retry-After': retryAfter,
    RateLimit: header(z.string().optional(), 'What is left of the limit, and for how long.'),
    'RateLimit-Policy': header(z.string().optional(), 'The limits that apply.'),
  },
};

function headersOf(slugs: readonly ProblemSlug[]): Pick<ZodOpenApiResponseObject, 'headers'> {
  const shape: z.ZodRawShape = Object.assign({}, ...slugs.map((slug) => headersBySlug[slug]));
  return Object.keys(shape).length === 0 ? {} : { headers: z.object(shape) };
}

function pascalCase(slug: string): string {
  return slug.replace(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase());
}
