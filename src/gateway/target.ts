/** Where a service reference leads: to a module of this process, or across the network. */

export type Target =
  | { readonly kind: 'local'; readonly name: string }
  /**
   * `origin` gives scheme, host and port; it is a function because a listener's port may be known late. `path` is put
   * before every path that is sent there: `''`, or `/base`.
   */
  | { readonly kind: 'remote'; readonly origin: () => string; readonly path: string };

/** For people: where requests go. */
export function describeTarget(target: Target): string {
  return target.kind === 'local' ? 'in this process' : target.origin() + target.path;
}
