/** What a record says of the version that a request belongs to, as `explain` tells it. */
import { placeOf } from './explain-match.ts';
import type { VersionPart } from './explanation.ts';
import type { AgingVersion } from './version-life.ts';

/** `root`: the public path of the gateway, without a slash at the end. */
export function explainVersion({ record, headers, ended }: AgingVersion, root: string): VersionPart {
  const { deprecation, sunset, link } = headers(root);
  const told = { Deprecation: deprecation, Sunset: sunset, Link: link };
  return {
    name: record.name,
    prefix: record.prefix,
    source: placeOf(record.source),
    ended: ended() !== undefined,
    headers: Object.entries(told).flatMap(([name, value]) => (value === undefined ? [] : [{ name, value }])),
  };
}
