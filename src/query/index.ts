/** The language of lists: query arguments in, plain data out, and links back to text. */
export { formatCursor } from './cursor.ts';
export { type ItemQuery, parseItemQuery } from './item-language.ts';
export { formatLinkHeader } from './link-header.ts';
export {
  createListLanguage,
  type ListLanguage,
  type ListLanguageOptions,
} from './list-language.ts';
export type { Filter, ListQuery, Order, TextSearch } from './list-query.ts';
export { createOwnReader, type OwnArguments, type OwnReader } from './own-arguments.ts';
export { type PageLinks, type Position, pageLinks, type Walk, walkLinks } from './page.ts';
export type { Scalar } from './scalar.ts';
export { itemArguments, itemSchema } from './schemas.ts';
export { urlField } from './url-field.ts';
export {
  createView,
  type Face,
  type Field,
  type PublicItem,
  type PublicValue,
  present,
  type ShownField,
  type View,
  type ViewDefinition,
  type ViewField,
} from './view.ts';
