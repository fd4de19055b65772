/** How a cluster names frontdesk's own kinds of objects: their API group and version, and the plurals in paths. */

/** Independent of GATEWAY_DOMAIN, because definitions belong to the whole cluster. */
export const ownGroup = 'gateway.local';
export const ownVersion = 'v1';

export function isOwnKind({ apiVersion }: { readonly apiVersion: string }): boolean {
  return apiVersion.startsWith(`${ownGroup}/`);
}

export function pluralOf(kind: string): string {
  return `${kind.toLowerCase().replace(/y$/, 'ie')}s`;
}
