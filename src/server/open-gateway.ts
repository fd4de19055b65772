/** Opens the gateway for a configuration, connecting its records to the services that they name. */

import type { AuthCheck, AuthRehearsal, AuthService as AuthServiceOfProcess } from '#auth';
import {
  type AuthService as AuthServiceRecord,
  type Configuration,
  configurationFrom,
  type Mapping,
  type MappingInput,
} from '#config';
import { createExplain } from '#explain';
import {
  createGatewayInTurns,
  type GatewayRecords,
  type GatewayState,
  type Handler,
  type InternalRoute,
} from '#gateway';
import { userHeader } from '#http';
import { apiVersions } from '#travel';
import type { OpenGateway } from './current-gateway.ts';
import type { Setup } from './options.ts';
import { createEntrySettings } from './pipeline.ts';
import { type ConnectLimiterParts, connectLimiter } from './rate-limiting.ts';
import { failsClosed } from './record-services.ts';
import { realmOf, type Services, userHeadersOf } from './services.ts';

export interface GatewayParts extends ConnectLimiterParts {
  readonly services: Pick<Services, 'byName' | 'rehearsalFor'> & {
    /** Undefined when the auth service does not run in this process. */
    readonly auth: Pick<AuthServiceOfProcess, 'checkFor'> | undefined;
  };
  /** The server's internal routes: API versions, probes, diagnostics. */
  readonly routes: readonly InternalRoute[];
  /** Shared by all gateways of the process. */
  readonly state: GatewayState;
}

/** Without the gateway module, ignores the records: serves a single service at `/`, and several under their names. */
export async function openGateway(
  setup: Setup,
  configuration: Configuration,
  parts: GatewayParts,
): Promise<OpenGateway> {
  const { settings, has } = setup;
  const services = parts.services.byName;
  const common = commonOptions(setup, parts);
  if (!has('gateway')) {
    const gateway = await createGatewayInTurns({
      configuration: noRecords,
      internalRoutes: [...plainRoutes(services), ...parts.routes],
      // Without trusted proxies, nothing distinguishes a gateway from other clients.
      identityHeaders: settings.trustedProxies.length === 0 ? [] : identityHeadersOf(configuration),
      believesProxies: true,
      ...common,
    });
    return { gateway, explain: createExplain(gateway, createEntrySettings(setup)), close: gateway.close };
  }
  const { limits } = configuration;
  const authServices = configuration.authServices.map(withUserHeaders);
  const rateLimitServices = configuration.rateLimitServices.map((record) => {
    return { ...record, failureModeDeny: failsClosed(setup, record) };
  });
  const [rateLimitService] = rateLimitServices;
  const mappings = [...configuration.mappings, ...remoteVersions(setup, configuration)];
  const limiter = rateLimitService && connectLimiter(rateLimitService, limits, parts);
  const gateway = await closeOnFailure(
    limiter,
    createGatewayInTurns({
      configuration: { ...configuration, mappings, authServices, rateLimitServices },
      internalRoutes: parts.routes,
      identityHeaders: [userHeader],
      adminUsers: settings.adminUsers,
      ...localAuthServices(setup, authServices, parts),
      limiter: limiter?.limiter,
      ...common,
    }),
  );
  return {
    gateway,
    explain: createExplain(gateway, createEntrySettings(setup)),
    async close() {
      await gateway.close();
      await limiter?.close();
    },
  };
}

function commonOptions({ settings, logger, clock }: Setup, { resolve, state, services }: GatewayParts) {
  return {
    services: services.byName,
    resolve,
    state,
    logger,
    clock,
    timeoutMs: settings.upstreamTimeoutMs,
    connectTimeoutMs: settings.upstreamConnectTimeoutMs,
    idleTimeoutMs: settings.upstreamIdleTimeoutMs,
    bodyBytesMax: settings.bodyBytesMax,
    strictPaths: settings.strictPaths,
  };
}

const noRecords: GatewayRecords = {
  mappings: [],
  authServices: [],
  rateLimitServices: [],
  versions: [],
};

/** The headers in which a gateway with these records names the user. */
function identityHeadersOf({ authServices }: Configuration): readonly string[] {
  return [userHeader, ...authServices.flatMap(({ allowedAuthorizationHeaders }) => allowedAuthorizationHeaders)];
}

/** Waits for `opening`, and closes `opened` if it fails. */
async function closeOnFailure<T>(
  opened: { readonly close: () => Promise<void> } | undefined,
  opening: Promise<T>,
): Promise<T> {
  try {
    return await opening;
  } catch (error) {
    void opened?.close();
    throw error;
  }
}

/** The mappings to the demo's API if it runs in another process. In this process it has internal routes instead. */
function remoteVersions({ has, demo, settings }: Setup, { mappings }: Configuration): readonly Mapping[] {
  if (!demo || has('api') || !Object.hasOwn(settings.serviceAddresses, 'api')) return [];
  const isFree = (name: string) => mappings.every(({ prefix }) => prefix !== `/${name}`);
  const records = apiVersions.filter(isFree).map(
    (name): MappingInput => ({
      apiVersion: 'gateway/v1',
      kind: 'Mapping',
      name: `api-${name}`,
      prefix: `/${name}`,
      rewrite: '',
      service: 'api',
      bypass_auth: true,
    }),
  );
  return configurationFrom({ records }, settings).configuration.mappings;
}

/** Excludes auth, which has its own listener, and the API, whose versions have internal routes already. */
function plainRoutes(services: Readonly<Record<string, Handler>>): InternalRoute[] {
  const plain = Object.entries(services).filter(([name]) => name !== 'auth' && name !== 'api');
  return plain.map(([name, run]) => ({
    name,
    prefix: plain.length === 1 ? '/' : `/${name}`,
    rewrite: '/',
    forAdmins: false,
    run,
  }));
}

/**
 * Returns the check of the auth service of this process for each record that refers to it, and its rehearsal:
 * `checkServiceRoles` rejects other services of this process. The auth services of the other records are called over
 * HTTP.
 */
function localAuthServices(
  setup: Setup,
  records: readonly AuthServiceRecord[],
  { resolve, services: { auth, rehearsalFor } }: GatewayParts,
): {
  readonly authChecks: Readonly<Record<string, AuthCheck>>;
  readonly authRehearsals: Readonly<Record<string, AuthRehearsal>>;
} {
  if (auth === undefined || rehearsalFor === undefined) return { authChecks: {}, authRehearsals: {} };
  const local = records.filter(({ authService }) => resolve(authService).kind === 'local');
  const byRecord = <T>(create: (realm: string, userHeaders: readonly string[]) => T) =>
    Object.fromEntries(local.map((record) => [record.name, create(realmOf(setup, record), userHeadersOf(record))]));
  return { authChecks: byRecord(auth.checkFor), authRehearsals: byRecord(rehearsalFor) };
}

/** A record for frontdesk's own auth service need not list the header that names the user. */
function withUserHeaders(record: AuthServiceRecord): AuthServiceRecord {
  return record.authService === 'auth' ? { ...record, allowedAuthorizationHeaders: userHeadersOf(record) } : record;
}
