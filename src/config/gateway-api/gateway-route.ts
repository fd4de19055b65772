/** What a Mapping has in addition if it was made from a rule of a route of the Gateway API. */

export interface GatewayRoute {
  /** When the route was created, in seconds since 1970. Of Mappings that are as specific, that of the older route comes first. */
  readonly createdAtS: number;
  /**
   * Where the Mapping comes from: `shop/orders 0001 0002` is the second rule and the third match of a route. Mappings with
   * the same place and match share requests by weight. Of others that are as specific, the first in alphabetical order
   * comes first.
   */
  readonly place: string;
  /** The listener whose requests it matches: that of HTTP, or that of HTTPS. Undefined for both. */
  readonly scheme: 'http' | 'https' | undefined;
  /** Hosts whose requests it does not match, because they belong to other listeners: `a.example`, or `*.a.example`. */
  readonly otherHosts: readonly string[];
  /** Replaces the whole path for the service, in place of `rewrite`. Undefined to keep to `rewrite`. */
  readonly fullPath: string | undefined;
  /** The RoutePolicies of its rule. Of the same field in several, the last one has counted. */
  readonly policies: readonly AttachedPolicy[];
  /** Why its requests get 500: its backend does not exist, or may not be used. */
  readonly fault: string | undefined;
}

export interface AttachedPolicy {
  /** `RoutePolicy shop/gold`. */
  readonly name: string;
  /** The names of the fields that it has decided about. */
  readonly fields: readonly string[];
}
