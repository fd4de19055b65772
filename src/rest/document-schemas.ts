/** The schemas of what every route answers alike: items and pages by view, links, and problems. */
import { z } from 'zod';
import { type ItemShape, itemSchema } from '#query';

/** By name, as components of a document; the schemas of each view are made once, so that they can be referred to. */
export interface DocumentSchemas {
  readonly item: (face: ItemShape) => z.ZodObject;
  readonly page: (face: ItemShape) => z.ZodObject;
  readonly named: () => Readonly<Record<string, z.ZodObject>>;
}

export function createDocumentSchemas(): DocumentSchemas {
  const items = new Map<ItemShape, z.ZodObject>();
  const pages = new Map<ItemShape, z.ZodObject>();
  const item = (face: ItemShape) => remember(items, face, () => itemSchema(face));
  const page = (face: ItemShape) => remember(pages, face, () => pageOf(item(face)));
  const named = () => ({
    ...namesOf(items, ''),
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

/** Those of a view without a name stand where they are used. */
function namesOf(made: ReadonlyMap<ItemShape, z.ZodObject>, ending: string): Readonly<Record<string, z.ZodObject>> {
  const entries = [...made].flatMap(([{ name }, schema]) => (name === undefined ? [] : [[name + ending, schema]]));
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

function pageOf(item: z.ZodObject): z.ZodObject {
  return z.object({
    items: z.array(item),
    offset: z.int().min(0).optional().describe('Absent with `after`.'),
    limit: z.int().min(1),
    total: z.int().min(0).optional().describe('On all pages. Absent with `total=false`.'),
    links: pageLinks,
  });
}

/** `ErrorBody`. */
export const problemSchema = z.object({
  code: z.int().describe('The status of the answer.'),
  message: z.string().meta({ description: 'The status and its name.', examples: ['404: Not Found'] }),
  info_url: z.url().optional().describe('A page about this kind of problem.'),
  detail: z.string().optional().describe('What was wrong this time.'),
  errors: z
    .array(
      z.object({
        pointer: z.string().meta({ description: 'A JSON pointer.', examples: ['#/query/limit'] }),
        detail: z.string(),
      }),
    )
    .optional()
    .describe('Each thing that was wrong.'),
});

/** RFC 9457. */
export const problemDetails = problemSchema.extend({
  type: z.string().meta({ format: 'uri-reference' }),
  title: z.string(),
  status: z.int(),
});
