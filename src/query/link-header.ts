/** Page links as the value of a `Link` header (RFC 8288, section 3). */
import type { PageLinks } from './page.ts';

export function formatLinkHeader(links: PageLinks): string {
  return Object.entries(links)
    .map(([relation, target]) => `<${target}>; rel="${relation}"`)
    .join(', ');
}
