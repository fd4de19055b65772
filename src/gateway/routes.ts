/** Every route of a gateway: those of the records, and those that the server brings itself. */
import type { Logger } from '#http';
import { createAuthStages } from './auth-services.ts';
import type { GatewayCounts, GatewayOptions } from './gateway.ts';
import type { Holdings } from './holdings.ts';
import type { Identity } from './identity.ts';
import { type ReadyRoute, routeOfInternal, routeOfMapping } from './route.ts';

export interface RoutesParts {
  readonly identity: Identity;
  readonly holdings: Holdings;
  readonly counts: GatewayCounts;
  readonly logger: Logger;
}

export const usualBodyBytesMax = 1024 * 1024;

/** Throws TypeError for a service or an auth service that is named and not there. */
export function createRoutes(
  options: GatewayOptions,
  { identity, holdings, counts, logger }: RoutesParts,
): ReadyRoute[] {
  const { mappings, authServices = [], internalRoutes = [], resolve } = options;
  const {
    timeoutMs = 3000,
    connectTimeoutMs = 3000,
    idleTimeoutMs = 300_000,
    bodyBytesMax = usualBodyBytesMax,
    clock = Date.now,
  } = options;
  const onSilence = () => {
    counts.silences.auth = clock();
  };
  const auth = createAuthStages(authServices, { resolve, holdings, counts: counts.auth, onSilence, logger });
  const parts = {
    resolve,
    auth,
    holdings,
    identity,
    logger,
    local(name: string) {
      const service = options.services[name];
      if (service === undefined) throw new TypeError(`no service "${name}" in this process`);
      return service;
    },
    domain: options.rateLimitService?.domain,
    ...{ timeoutMs, connectTimeoutMs, idleTimeoutMs, bodyBytesMax },
  };
  const served = internalRoutes.filter(({ authenticated }) => !authenticated || auth.hasDefault);
  return [
    ...mappings.map((mapping) => routeOfMapping(mapping, parts)),
    ...served.map((internal) => routeOfInternal(internal, parts)),
  ];
}
