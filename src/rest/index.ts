/** The conventions applied: routes as data made into apps that describe themselves, and versions of an API side by side. */
export { createResourceApp, type ResourceAppOptions } from './app.ts';
export { type CollectionDefinition, collection, type Rows } from './collection.ts';
export { type IndexDefinition, type ItemDefinition, index, item } from './item.ts';
export type { ApiInfo } from './openapi/document.ts';
export type { Guard, OperationDocs, Route } from './operation.ts';
export { createVersions } from './versions.ts';
export {
  type CreateDefinition,
  type CreateRequest,
  type CreateResult,
  createItem,
  type Update,
  type UpdateDefinition,
  updateItem,
} from './write.ts';
