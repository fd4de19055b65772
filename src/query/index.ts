/** The query layer: parses query strings into plain data, turns rows into public items, and builds page links. */
export { createExtraArguments, type ExtraSchema } from './arguments.ts';
export type { Order } from './fields.ts';
export { cursorLinks, formatCursor, formatLinkHeader, offsetLinks, type PageLinks } from './paging.ts';
export { createListParser, type ListOptions, type ListQuery, parseItemQuery } from './queries.ts';
export { itemArguments, itemSchema } from './schemas.ts';
export {
  createView,
  type DerivedField,
  type Field,
  type ItemShape,
  type Scalar,
  timeSchema,
  toPublicItem,
  urlField,
  type View,
  type ViewDefinition,
} from './view.ts';
