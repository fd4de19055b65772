/** The conventions applied: routes as data made into apps that describe themselves, and versions of an API side by side. */
export { createResourceApp, type ResourceAppOptions } from './app.ts';
export { type CollectionDefinition, collection } from './collection.ts';
export { index, item } from './item.ts';
export type { ApiInfo } from './openapi/document.ts';
export type { OperationDocs, Route } from './operation.ts';
export { createVersions } from './versions.ts';
export { createItem, updateItem } from './write.ts';
