/** How a request comes to its service, in this process or across HTTP, and how long it may take. */
import type { Mapping } from '#config';
import { createForward, createShadow } from '#proxy';
import { deferForward } from './defer-forward.ts';
import { createLocalForward } from './forward-local.ts';
import { withHeaderRules } from './header-stage.ts';
import type { RemoteTarget } from './holdings.ts';
import type { ReadyRoute, RouteParts } from './route.ts';

/** In milliseconds, 0: without end; undefined in this process. */
export interface Timeouts {
  readonly timeoutMs: number | undefined;
  readonly connectTimeoutMs: number | undefined;
  readonly idleTimeoutMs: number | undefined;
}

export interface Way extends Timeouts, Pick<ReadyRoute, 'cluster' | 'forward' | 'shadowing' | 'traffic'> {}

export const untimed: Timeouts = { timeoutMs: undefined, connectTimeoutMs: undefined, idleTimeoutMs: undefined };

export function wayHere(mapping: Mapping, name: string, parts: RouteParts): Way {
  if (mapping.shadow)
    throw new TypeError(`Mapping ${mapping.name}: "${name}" is in this process, and copies go across HTTP alone`);
  const forward = withHeaderRules(mapping, createLocalForward(mapping, parts.local(name)));
  const traffic = parts.holdings.ofTraffic(mapping.name);
  return { ...untimed, cluster: undefined, forward, shadowing: undefined, traffic };
}

export function wayAcross(mapping: Mapping, target: RemoteTarget, parts: RouteParts): Way {
  const { identity, bodyBytesMax, logger } = parts;
  const { path } = target;
  const timeoutMs = mapping.timeoutMs ?? parts.timeoutMs;
  const connectTimeoutMs = mapping.connectTimeoutMs ?? parts.connectTimeoutMs;
  const idleTimeoutMs = mapping.idleTimeoutMs ?? parts.idleTimeoutMs;
  const cluster = parts.holdings.ofMapping(mapping, target, connectTimeoutMs);
  const traffic = parts.holdings.ofTraffic(mapping.name);
  const counts = traffic.upstream;
  return {
    timeoutMs,
    connectTimeoutMs,
    idleTimeoutMs,
    cluster,
    forward: deferForward(mapping, () =>
      createForward({ mapping, cluster, path, identity, logger, timeoutMs, idleTimeoutMs, bodyBytesMax, counts }),
    ),
    shadowing: mapping.shadow ? createShadow({ mapping, cluster, path, identity, logger, timeoutMs }) : undefined,
    traffic,
  };
}
