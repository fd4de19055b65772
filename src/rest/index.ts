/** The conventions applied: resources as apps, and versions of an API side by side. */
export { createResourceApp, type ResourceAppOptions } from './resource-app.ts';
export {
  type CollectionDefinition,
  collection,
  type IndexDefinition,
  type ItemDefinition,
  index,
  item,
  type ResourceRoute,
  type Rows,
} from './route.ts';
export { createVersions } from './versions.ts';
