/** Labels: what the rate-limit service is told of a request, entry by entry. */

/** `name` is the key of the entry. A `header` is lower-case; `default` is sent when it is missing and `omitIfNotPresent` is false. */
export type Label =
  | {
      readonly kind: 'header';
      readonly name: string;
      readonly header: string;
      readonly omitIfNotPresent: boolean;
      readonly default: string;
    }
  | { readonly kind: 'generic_key'; readonly name: string; readonly value: string }
  /** The client's address as trusted proxies tell it; the names of the gateway and of the mapping's service; the request's own. */
  | {
      readonly kind: 'remote_address' | 'source_cluster' | 'destination_cluster' | 'method' | 'path';
      readonly name: string;
    };

/** One descriptor in the making. The group's name is for people. */
export interface LabelGroup {
  readonly name: string;
  readonly labels: readonly Label[];
}
