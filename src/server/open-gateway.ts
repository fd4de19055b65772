/** Opens the gateway for a configuration, connecting its records to the services that they name. */

import {
  type AuthCheck,
  type AuthRehearsal,
  type AuthService as AuthServiceOfProcess,
  createTokenCheck,
  type OpenTokenProviders,
  type RehearsalOptions,
  type TokenCheck,
  type TokenProviders,
} from '#auth';
import {
  type AuthService as AuthServiceRecord,
  type Configuration,
  configurationFrom,
  keyHeaderOf,
  type Mapping,
  type MappingInput,
  ownAuthService,
} from '#config';
import { createExplain } from '#explain';
import {
  createGatewayInTurns,
  type GatewayRecords,
  type GatewayState,
  type Handler,
  type InternalRoute,
} from '#gateway';
import { clientSubjectHeader, keyNameHeader, userHeader } from '#http';
import { apiVersions } from '#travel';
import type { OpenGateway } from './current-gateway.ts';
import type { Setup } from './options.ts';
import { createEntrySettings } from './pipeline.ts';
import { type ConnectLimiterParts, connectLimiter } from './rate-limiting.ts';
import { failsClosed } from './record-services.ts';
import { realmOf, type Services, tokensOfListener, usedProviders, userHeadersOf } from './services.ts';

export interface GatewayParts extends ConnectLimiterParts {
  readonly services: Pick<Services, 'byName' | 'rehearsalFor'> & {
    /** Undefined when the auth service does not run in this process. */
    readonly auth: Pick<AuthServiceOfProcess, 'checkFor'> | undefined;
  };
  /** The server's internal routes: API versions, probes, diagnostics. */
  readonly routes: readonly InternalRoute[];
  /** Shared by all gateways of the process. */
  readonly state: GatewayState;
  readonly tokenProviders: Pick<TokenProviders, 'open'>;
}

/** Without the gateway module, ignores the records: serves a single service at `/`, and several under their names. */
export async function openGateway(
  setup: Setup,
  configuration: Configuration,
  parts: GatewayParts,
): Promise<OpenGateway> {
  const checksTokens = setup.has('gateway') || setup.has('auth');
  const tokens = await parts.tokenProviders.open(checksTokens ? usedProviders(configuration) : []);
  const ofRecords = await closeOnFailure(
    tokens,
    setup.has('gateway') ? openRecords(setup, configuration, parts, tokens) : openServices(setup, configuration, parts),
  );
  const { gateway } = ofRecords;
  return {
    gateway,
    explain: createExplain(gateway, createEntrySettings(setup)),
    tokensOfListener: tokensOfListener(configuration, tokens),
    async close() {
      await ofRecords.close();
      tokens.close();
    },
  };
}

type Opened = Pick<OpenGateway, 'gateway' | 'close'>;

async function openServices(setup: Setup, configuration: Configuration, parts: GatewayParts): Promise<Opened> {
  const gateway = await createGatewayInTurns({
    configuration: noRecords,
    internalRoutes: [...plainRoutes(parts.services.byName), ...parts.routes],
    // Without trusted proxies, nothing distinguishes a gateway from other clients.
    identityHeaders: setup.settings.trustedProxies.length === 0 ? [] : identityHeadersOf(configuration),
    believesProxies: true,
    ...commonOptions(setup, parts),
  });
  return { gateway, close: gateway.close };
}

async function openRecords(
  setup: Setup,
  configuration: Configuration,
  parts: GatewayParts,
  tokens: OpenTokenProviders,
): Promise<Opened> {
  const { limits } = configuration;
  const tokenChecks = createTokenChecks(setup, configuration, tokens);
  const authServices = configuration.authServices.map((record) =>
    withOwnHeaders(record, tokenChecks[record.name], keyHeaderOf(record, configuration.users)),
  );
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
      identityHeaders: ownIdentityHeaders,
      allowAddresses: setup.settings.allowAddresses,
      denyAddresses: setup.settings.denyAddresses,
      adminUsers: setup.settings.adminUsers,
      ...localAuthServices(setup, configuration, parts),
      tokenChecks,
      limiter: limiter?.limiter,
      ...commonOptions(setup, parts),
    }),
  );
  return {
    gateway,
    async close() {
      await gateway.close();
      await limiter?.close();
    },
  };
}

function commonOptions(setup: Setup, { resolve, state, services }: GatewayParts) {
  const { settings, logger, clock } = setup;
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
    compressesService: (name: string) => settings.compress && !Object.hasOwn(setup.services, name),
  };
}

const noRecords: GatewayRecords = {
  mappings: [],
  authServices: [],
  rateLimitServices: [],
  versions: [],
  addresses: [],
};

/** No client can send these, whether or not a record uses them: services believe them. */
const ownIdentityHeaders = [userHeader, clientSubjectHeader, keyNameHeader];

/** The headers in which a gateway with these records names the user. */
function identityHeadersOf(configuration: Configuration): readonly string[] {
  const ofClaims = usedProviders(configuration).flatMap(({ claimToHeaders }) => claimToHeaders);
  return [
    ...ownIdentityHeaders,
    ...configuration.authServices.flatMap(({ allowedAuthorizationHeaders }) => allowedAuthorizationHeaders),
    ...ofClaims.map(({ header }) => header),
  ];
}

/** Waits for `opening`, and closes `opened` if it fails. */
async function closeOnFailure<T>(
  opened: { readonly close: () => Promise<void> | void } | undefined,
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
  { authServices, users }: Configuration,
  { resolve, services: { auth, rehearsalFor } }: GatewayParts,
): {
  readonly authChecks: Readonly<Record<string, AuthCheck>>;
  readonly authRehearsals: Readonly<Record<string, AuthRehearsal>>;
} {
  if (auth === undefined || rehearsalFor === undefined) return { authChecks: {}, authRehearsals: {} };
  const local = authServices.filter(({ authService }) => resolve(authService).kind === 'local');
  const byRecord = <T>(create: (options: RehearsalOptions, record: AuthServiceRecord) => T) =>
    Object.fromEntries(
      local.map((record) => {
        const [realm, userHeaders] = [realmOf(setup, record), userHeadersOf(record)];
        return [record.name, create({ realm, userHeaders, keyHeader: keyHeaderOf(record, users) }, record)];
      }),
    );
  return {
    authChecks: byRecord(({ realm, userHeaders, keyHeader }, { providers }) =>
      auth.checkFor(realm, userHeaders, providers.length > 0, keyHeader),
    ),
    authRehearsals: byRecord(rehearsalFor),
  };
}

/** By the name of the AuthService, wherever it runs: tokens need no call to it. */
function createTokenChecks(
  setup: Setup,
  { authServices }: Configuration,
  tokens: OpenTokenProviders,
): Readonly<Record<string, TokenCheck>> {
  const checks = authServices.flatMap((record) => {
    const verifier = tokens.verifierOf(record.providers);
    if (verifier === undefined) return [];
    const [realm, userHeaders] = [realmOf(setup, record), userHeadersOf(record)];
    return [[record.name, createTokenCheck({ verifier, realm, userHeaders })] as const];
  });
  return Object.fromEntries(checks);
}

/**
 * A record for frontdesk's own auth service need not list the headers that name the user and the key, or that claims
 * become. No record needs to list the header of API keys.
 */
function withOwnHeaders(
  record: AuthServiceRecord,
  tokens: TokenCheck | undefined,
  keyHeader: string | undefined,
): AuthServiceRecord {
  const { allowedRequestHeaders, allowedAuthorizationHeaders } = record;
  const ownNames = [...userHeadersOf(record), ...(tokens?.claimHeaders ?? []), ...(keyHeader ? [keyNameHeader] : [])];
  return {
    ...record,
    apiKeyHeader: keyHeader,
    allowedRequestHeaders: keyHeader ? [...allowedRequestHeaders, keyHeader] : allowedRequestHeaders,
    allowedAuthorizationHeaders: record.authService === ownAuthService ? ownNames : allowedAuthorizationHeaders,
  };
}
