/** The query layer: parses query strings into plain data, turns rows into public items, and builds page links. */
export { createExtraArguments, type ExtraSchema } from './arguments.ts';
export { formatCursor } from './cursor.ts';
export type { Order } from './fields.ts';
export { parseItemQuery } from './item-arguments.ts';
export { createListParser, type ListOptions, type ListParser, type ListQuery } from './list-arguments.ts';
export { cursorLinks, formatLinkHeader, offsetLinks, type PageLinks } from './page-links.ts';
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
} from './view.ts';
