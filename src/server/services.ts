/** The HTTP services of this process: auth, the travel services, and those of an embedding program. */

import { isDeepStrictEqual } from 'node:util';
import {
  type AuthRehearsal,
  type AuthService,
  createAuthenticator,
  createAuthService,
  createLoginCounts,
  createRehearsal,
  createUsers,
  type LiveAuthenticator,
  type LoginCounts,
  type OpenTokenProviders,
  type RehearsalOptions,
  realmDefault,
  type TokenVerifier,
  verificationsMaxDefault,
  waitingMaxDefault,
} from '#auth';
import {
  type AuthService as AuthServiceRecord,
  type Configuration,
  type JwtProvider,
  keyHeaderOf,
  ownAuthService,
  parseServiceReference,
} from '#config';
import { equalPart } from '#foundation';
import type { Handler } from '#gateway';
import { isolate, userHeader } from '#http';
import { openTravel, type ResponseParts, type Travel, travelModules } from '#travel';
import type { Setup } from './options.ts';
import type { LiveConfiguration } from './reload.ts';
import type { ThreadParts } from './threads/parts.ts';

export interface Services {
  /** Undefined when the auth service does not run in this process. */
  readonly auth: AuthService | undefined;
  /** Creates what `auth` would decide about requests that are explained. Undefined like `auth`. */
  readonly rehearsalFor: ((options: RehearsalOptions) => AuthRehearsal) | undefined;
  /** Counts the results of the auth service's password checks. */
  readonly logins: LoginCounts | undefined;
  /** The API by the name of each version, such as `v1`. All versions have the same handler. */
  readonly versions: Readonly<Record<string, Handler>>;
  /** All services, isolated, by the name that mappings use. */
  readonly byName: Readonly<Record<string, Handler>>;
}

export interface ServicesParts {
  readonly configuration: LiveConfiguration;
  /** Undefined when none of its services run in this process. */
  readonly travel: Pick<Travel, 'createApps'> | undefined;
  readonly problems: ResponseParts;
  readonly tokens: CurrentTokens;
  /** Undefined when the process serves with one thread. */
  readonly thread: Pick<ThreadParts, 'count' | 'logins'> | undefined;
}

/** What checks the tokens on the auth listener. Changes with the configuration. */
export interface CurrentTokens {
  ofListener: TokenVerifier | undefined;
}

export function createServices(setup: Setup, parts: ServicesParts): Services {
  const { configuration, travel, problems, tokens } = parts;
  const { logger, has } = setup;
  const logins = has('auth') ? createLoginCounts() : undefined;
  const onListener = oncePerConfiguration(configuration, (current) => ({
    realm: realmOfListener(setup, current),
    userHeaders: listenerUserHeaders(current),
    keyHeaders: listenerKeyHeaders(current),
  }));
  const authenticator = logins && createReloadingAuthenticator(parts, logins);
  const auth =
    authenticator &&
    createAuthService({
      authenticator,
      realm: () => onListener().realm,
      userHeader: () => onListener().userHeaders,
      keyHeader: () => onListener().keyHeaders,
      tokens: () => tokens.ofListener,
      logger,
    });
  const { versionNames = [], apps: travelApps } = travel?.createApps(problems) ?? {};
  const apps = { ...setup.services, ...travelApps, ...(auth && { auth: auth.app }) };
  const byName = Object.fromEntries(Object.entries(apps).map(([name, app]) => [name, isolate(app)]));
  const { api } = byName;
  const versions = api ? Object.fromEntries(versionNames.map((name) => [name, api])) : {};
  const rehearsalFor: Services['rehearsalFor'] =
    authenticator && ((options) => createRehearsal(authenticator, options));
  return { auth, rehearsalFor, logins, versions, byName };
}

/** Returns what `read` returns for the current configuration, which it calls once for each. */
function oncePerConfiguration<T extends object>(
  { current }: Pick<LiveConfiguration, 'current'>,
  read: (configuration: Configuration) => T,
): () => T {
  const known = new WeakMap<Configuration, T>();
  return () => {
    const { configuration } = current();
    const value = known.get(configuration) ?? read(configuration);
    known.set(configuration, value);
    return value;
  };
}

/** The realm that clients are shown when the record uses the auth service of this process. */
export function realmOf({ demo }: Pick<Setup, 'demo'>, record: AuthServiceRecord | undefined): string {
  return record?.realm ?? (demo ? 'travel' : realmDefault);
}

/**
 * The headers in which frontdesk's auth service names the user for a gateway with this record, whichever process it runs
 * in.
 */
export function userHeadersOf({ allowedAuthorizationHeaders: listed }: AuthServiceRecord): readonly string[] {
  return listed.length === 0 ? [userHeader] : listed;
}

/** The providers that the AuthServices of a configuration use. */
export function usedProviders({ authServices, jwtProviders }: Configuration): readonly JwtProvider[] {
  const names = new Set(authServices.flatMap(({ providers }) => providers));
  return jwtProviders.filter(({ name }) => names.has(name));
}

/** On the auth listener, which serves gateways with any of the records: tokens of all providers, one for each issuer. */
export function tokensOfListener(configuration: Configuration, opened: OpenTokenProviders): TokenVerifier | undefined {
  const byIssuer = new Map(usedProviders(configuration).map(({ issuer, name }) => [issuer, name]));
  return opened.verifierOf([...byIssuer.values()]);
}

/** The headers on the auth listener, which serves gateways with any of the records and other proxies. */
function listenerUserHeaders({ authServices }: Configuration): readonly string[] {
  const local = authServices.filter(({ authService }) => parseServiceReference(authService)?.host === 'auth');
  return [...new Set([userHeader, ...local.flatMap(userHeadersOf)])];
}

/** The headers in which the auth listener, which serves gateways with any of the records, accepts API keys. */
function listenerKeyHeaders({ authServices, users }: Configuration): readonly string[] {
  const own = authServices.filter(({ authService }) => authService === ownAuthService);
  const records = own.length > 0 ? own : [{ authService: ownAuthService, apiKeyHeader: undefined }];
  return [...new Set(records.flatMap((record) => keyHeaderOf(record, users) ?? []))];
}

/** The realm on the auth listener, which belongs to no record: that of the default local record, or else the first. */
function realmOfListener(setup: Setup, { authServices }: Configuration): string {
  const local = authServices.filter(({ authService }) => authService === ownAuthService);
  return realmOf(setup, local.find(({ isDefault }) => isDefault) ?? local[0]);
}

/** Creates an authenticator that is reloaded, and forgets verified passwords, only when the users change. */
function createReloadingAuthenticator(
  { configuration, thread }: ServicesParts,
  counts: LoginCounts,
): LiveAuthenticator {
  const { users } = configuration.current().configuration;
  const threads = thread?.count ?? 1;
  const authenticator = createAuthenticator({
    users: createUsers(users),
    counts,
    verificationsMax: equalPart(verificationsMaxDefault, threads),
    waitingMax: equalPart(waitingMaxDefault, threads),
    onOutcome: thread?.logins.publish,
  });
  thread?.logins.subscribe(authenticator.learn);
  configuration.onChange((next) => {
    if (isDeepStrictEqual(next.users, configuration.current().configuration.users)) return () => {};
    const store = createUsers(next.users);
    return () => authenticator.reload(store);
  });
  return authenticator;
}

/** Resolves to undefined when no travel service runs in this process. Rejects with a user-facing Error. */
export async function openTravelIfNeeded(setup: Setup): Promise<Travel | undefined> {
  if (!travelModules.some(setup.has)) return undefined;
  const { settings, loaded, logger, clock, has, demo } = setup;
  return openTravel({ settings, logger, clock, has, demo: demo ? loaded.configuration.demo : undefined });
}
