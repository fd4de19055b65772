/** The conventions applied: resources as apps, and versions of an API side by side. */
export { type Change, type ChangeDefinition, change } from './change.ts';
export { type CollectionDefinition, collection, type Rows } from './collection.ts';
export { type Creation, type CreationDefinition, type CreationRequest, creation } from './creation.ts';
export type { About } from './document.ts';
export { documented } from './documented.ts';
export { type IndexDefinition, type ItemDefinition, index, item } from './item.ts';
export type { Told } from './operation.ts';
export { createResourceApp, type ResourceAppOptions } from './resource-app.ts';
export type { DocumentedRoute, Guard, ResourceRoute } from './route.ts';
export { createVersions } from './versions.ts';
