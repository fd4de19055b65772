/** Which hosts the hostnames of a route and of a listener have in common. */

/**
 * Returns the hostnames whose requests a listener hands to a route: `[undefined]` for all hosts, and none if the two have
 * none in common. `*.shop.example` stands for any number of labels.
 */
export function commonHostnames(
  ofListener: string | undefined,
  ofRoute: readonly string[] = [],
): readonly (string | undefined)[] {
  if (ofRoute.length === 0) return [ofListener || undefined];
  if (!ofListener) return ofRoute;
  return [...new Set(ofRoute.flatMap((hostname) => common(ofListener, hostname) ?? []))];
}

/** Whether all hosts of the second hostname are among those of the first. Undefined stands for all hosts. */
export function includesHosts(one: string | undefined, other: string | undefined): boolean {
  return !one || (other !== undefined && (one === other || covers(one, other)));
}

function common(one: string, other: string): string | undefined {
  if (one === other || covers(one, other)) return other;
  return covers(other, one) ? one : undefined;
}

/** Whether `*.shop.example` stands for the other hostname, or for all that it stands for. */
function covers(wildcard: string, other: string): boolean {
  return wildcard.startsWith('*.') && other.replace(/^\*/, '').endsWith(wildcard.slice(1));
}
