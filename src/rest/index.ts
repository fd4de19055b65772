/** Builds REST apps from routes that are data, documents them in OpenAPI, and mounts API versions side by side. */
export { createResourceApp, type ResourceAppOptions } from './app.ts';
export { type CollectionDefinition, collection } from './collection.ts';
export { index, item } from './item.ts';
export type { ApiInfo } from './openapi/document.ts';
export type { OperationDocs, Route } from './operation.ts';
export { createVersions } from './versions.ts';
export { createItem, updateItem } from './write.ts';
