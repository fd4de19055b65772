/** Builds REST apps from routes that are data, documents them in OpenAPI, and mounts API versions side by side. */
export { createResourceApp, createVersions, type ResourceAppOptions } from './app.ts';
export type { ApiInfo } from './openapi/document.ts';
export type { OperationDocs, Route } from './operation.ts';
export { type CollectionDefinition, collection, index, item } from './read.ts';
export { createItem, type RequestIdentity, updateItem } from './write.ts';
