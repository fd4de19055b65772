/** Builds the examples of error responses: what this API responds to a typical request with that problem. */
import { z } from 'zod';
import {
  errorBody,
  type ProblemKind,
  type ProblemOptions,
  type ProblemPages,
  type ProblemSlug,
  problemTitle,
  queryFault,
  reasonOf,
} from '#http';
import { exampleOf, type Schema, type Schemas } from './page/schema.ts';

/** `shape` has the members that the body has in addition to the common ones. */
export type ProblemExample = (
  slug: string,
  kind: ProblemKind,
  shape: z.ZodRawShape,
) => {
  readonly body: object;
  /** In the form of RFC 9457. */
  readonly details: object;
};

/** `types` are the media types of normal responses. Without problem pages, errors have no `info_url`. */
export function createProblemExample(types: readonly string[], pages: ProblemPages | undefined): ProblemExample {
  const typical: Readonly<Record<string, TypicalParts>> = {
    ...typicalParts,
    'not-acceptable': { detail: `This resource is available as ${types.join(', ')}.` },
  };
  return function problemExample(slug, kind, shape) {
    const { status } = kind;
    const parts = { status, detail: undefined, errors: undefined, ...typical[slug], extension: extensionOf(shape) };
    const body = errorBody(parts, pages && pages.infoUrl + slug);
    const [type, title] =
      pages === undefined ? ['about:blank', reasonOf(status)] : [pages.type + slug, problemTitle(slug, kind)];
    return { body, details: { type, title, status, ...body } };
  };
}

type TypicalParts = Pick<ProblemOptions, 'detail' | 'errors'>;

/** The parts of the bodies that each operation sends, whatever its arguments are. */
const typicalParts: Partial<Record<ProblemSlug, TypicalParts>> = {
  'bad-argument': { errors: [queryFault('fields', 'has no value')] },
  'bad-body': { detail: 'The body is missing: send a JSON object.' },
  'bad-request': {
    detail: 'Idempotency-Key must be a single string of 1 to 255 printable ASCII characters, with or without quotes.',
  },
  'precondition-failed': { detail: 'The resource has changed since you read it: read it again before you change it.' },
  'precondition-required': { detail: 'Send If-Match with the ETag from a GET of this resource.' },
  'body-too-large': { detail: 'The body may have at most 65536 bytes.' },
  'unsupported-media-type': { detail: 'Send the body as application/json.' },
  'idempotency-mismatch': {
    detail:
      'The Idempotency-Key of this request belongs to a request with another body, sent at 2031-05-12T09:00:00.000Z. Send that body again, or another key.',
  },
};

function extensionOf(shape: z.ZodRawShape): Readonly<Record<string, unknown>> {
  const schema = z.toJSONSchema(z.object(shape), { unrepresentable: 'any', io: 'output' });
  return exampleOf(schema as Schema, (schema.$defs ?? {}) as Schemas) as Readonly<Record<string, unknown>>;
}
