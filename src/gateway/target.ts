/** Where a service reference leads: to a module of this process, or across the network. */

export type Target =
  | { readonly kind: 'local'; readonly name: string }
  /**
   * `origins` gives scheme, host and port of each address, never none; it is a function because a listener's port may be
   * known late, and gives the same array as long as nothing has changed. `path` is put before every path that is sent
   * there: `''`, or `/base`. `serverName` is what the certificate of an HTTPS address must show; without one its host.
   */
  | {
      readonly kind: 'remote';
      readonly origins: () => readonly string[];
      readonly path: string;
      readonly serverName?: string | undefined;
    };

/** For people: where requests go. */
export function describeTarget(target: Target): string {
  if (target.kind === 'local') return 'in this process';
  return target
    .origins()
    .map((origin) => origin + target.path)
    .join(', ');
}
