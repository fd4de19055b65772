/** Builds REST apps from routes that are data, documents them in OpenAPI, and mounts API versions side by side. */
export { createResourceApp, createVersions, type ResourceAppOptions } from './app.ts';
export { idempotencyMismatch, requestDigest } from './idempotency-key.ts';
export type {
  IdempotencyOptions,
  IdempotencyStore,
  KnownRequest,
  RequestIdentity,
  WriteResult,
} from './idempotency-store.ts';
export { type NegotiateOptions, negotiate } from './negotiate.ts';
export type { ApiInfo } from './openapi/document.ts';
export type { ItemTitle, OperationDocs, Route } from './operation.ts';
export { pageOf } from './page-of.ts';
export {
  type CollectionDefinition,
  collection,
  type IndexDefinition,
  type ItemDefinition,
  index,
  item,
  type Rows,
} from './read.ts';
export {
  type CreateDefinition,
  type CreateRequest,
  createItem,
  type UpdateDefinition,
  type UpdateRequest,
  updateItem,
} from './write.ts';
