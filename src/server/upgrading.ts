/** The upgrades of a process: to the protocols that any mapping in force allows, and to no others. */
import type { Configuration } from '#config';
import { createUpgrades, type Upgrades } from '#http';
import type { Settled } from './options.ts';
import type { Generations } from './reload.ts';

/** Without the gateway module there are no mappings, and every request is an ordinary one. */
export function createUpgrading({ has }: Settled, generations: Generations): Upgrades {
  let allowed = has('gateway') ? allowedBy(generations.current().configuration) : new Set<string>();
  generations.follow((configuration) => {
    const next = has('gateway') ? allowedBy(configuration) : allowed;
    return () => {
      allowed = next;
    };
  });
  return createUpgrades((protocol) => allowed.has(protocol));
}

function allowedBy({ mappings }: Configuration): ReadonlySet<string> {
  return new Set(mappings.flatMap(({ allowUpgrade }) => allowUpgrade));
}
