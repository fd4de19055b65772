/** The queries of lists and items: search strings in, plain data out; rows back to public items, and pages to links. */
export { createExtraArguments, type ExtraArguments, type ExtraSchema } from './arguments.ts';
export { formatCursor } from './cursor.ts';
export type { Order } from './fields.ts';
export { type ItemQuery, parseItemQuery } from './item-arguments.ts';
export {
  createListParser,
  type Filter,
  type ListOptions,
  type ListParser,
  type ListQuery,
  type TextSearch,
} from './list-arguments.ts';
export {
  type CursorPage,
  cursorLinks,
  formatLinkHeader,
  type OffsetPage,
  offsetLinks,
  type PageLinks,
} from './page-links.ts';
export { itemArguments, itemSchema } from './schemas.ts';
export {
  createView,
  type DerivedField,
  type Field,
  type ItemShape,
  type PublicItem,
  type PublicValue,
  type Scalar,
  toPublicItem,
  urlField,
  type View,
  type ViewDefinition,
  type ViewField,
} from './view.ts';
