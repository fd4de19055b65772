/** Notices about objects of a cluster that mean something to Ambassador, but are not read: annotations, and routes. */
import { isGuardingIngress } from '../ambassador/other-kinds.ts';
import { ambassadorDomain } from '../ambassador/translate.ts';
import { type ConfigurationError, fileError } from '../errors.ts';
import { annotationKey } from '../manifest.ts';
import { type ClusterObject, nameOfObject } from './object.ts';
import { hasRecords } from './read-object.ts';

/** `objects`: those that the reader of the cluster has handed over. */
export function unreadNotices(objects: readonly ClusterObject[], gatewayDomain: string): readonly ConfigurationError[] {
  const routes = objects.filter(({ value }) => isGuardingIngress(value));
  const unread = objects.filter((object) => !hasRecords(object, gatewayDomain) && !routes.includes(object));
  return [...annotationNotice(unread), ...routes.map(routesNotice)];
}

/** One notice about the objects that have records for Ambassador alone, which another gateway may be serving. */
function annotationNotice([first, ...more]: readonly ClusterObject[]): readonly ConfigurationError[] {
  if (first === undefined) return [];
  const others = more.length === 0 ? '' : `, nor that of ${more.length} more objects`;
  const message = `the annotation ${annotationKey(ambassadorDomain)} of this object is not read${others}`;
  const remedy = `Set GATEWAY_DOMAIN=${ambassadorDomain} to read it, unless another gateway does.`;
  return [fileError(nameOfObject(first), message, remedy)];
}

function routesNotice(object: ClusterObject): ConfigurationError {
  const message = 'its routes protect requests, and are not read';
  return fileError(nameOfObject(object), message, 'Write a Mapping for each route, then remove it.');
}
