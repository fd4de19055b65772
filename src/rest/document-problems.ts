/** The problems of an operation as its answers: one for each status, whichever problems share it. */
import { z } from 'zod';
import type { ZodOpenApiResponseObject } from 'zod-openapi';
import { type ProblemSlug, problems, type Representations } from '#http';
import { problemDetails, problemSchema } from './document-schemas.ts';
import { header, type Problems } from './operation.ts';

/** By status. */
export type ProblemAnswers = (found: Problems) => Readonly<Record<string, ZodOpenApiResponseObject>>;

/** For one document: the same problems are the same component wherever they come. */
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
    const answer = made.get(id) ?? responseOf(errorTypes, [], { id, ...options });
    made.set(id, answer);
    return answer;
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

/** A page for people has no schema but that of text. */
export function contentOf(types: readonly string[], schemaOf: (type: string) => z.ZodType) {
  const entries = types.map((type) => [type, { schema: type.startsWith('text/') ? page : schemaOf(type) }] as const);
  return Object.fromEntries(entries);
}

const page = z.string();

function describe(slugs: readonly ProblemSlug[]): string {
  const texts = slugs.map((slug) => `\`${slug}\`: ${problems[slug].meaning} ${problems[slug].remedy}`);
  return texts.length === 1 ? String(texts[0]) : texts.map((text) => `- ${text}`).join('\n');
}

const retryAfter = header(z.int().min(0), 'In seconds.');
const mayRetryAfter = header(z.int().min(0).optional(), 'In seconds.');

/** Those that every such answer has, and those that it may have. */
const headersBySlug: { readonly [Slug in ProblemSlug]?: z.ZodRawShape } = {
  unauthorized: { 'WWW-Authenticate': header(z.string(), 'The credentials that are asked for.') },
  'unsupported-media-type': { Accept: header(z.string(), 'What a body may be.') },
  'idempotency-running': { 'Retry-After': mayRetryAfter },
  'storage-unavailable': { 'Retry-After': mayRetryAfter },
  'too-many-requests': {
    'Retry-After': retryAfter,
    RateLimit: header(z.string().optional(), 'What is left of the limit, and for how long.'),
    'RateLimit-Policy': header(z.string().optional(), 'The limits that count here.'),
  },
};

function headersOf(slugs: readonly ProblemSlug[]): Pick<ZodOpenApiResponseObject, 'headers'> {
  const shape: z.ZodRawShape = Object.assign({}, ...slugs.map((slug) => headersBySlug[slug]));
  return Object.keys(shape).length === 0 ? {} : { headers: z.object(shape) };
}

function pascalCase(slug: string): string {
  return slug.replace(/(?:^|-)(\w)/g, (_, letter: string) => letter.toUpperCase());
}
