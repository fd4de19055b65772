/** Notices about settings that name services or users that nobody has, and about records that call the gateway itself. */
import { type ConfigurationError, didYouMean, fileError } from '../errors.ts';
import { isLoopback, parseServiceReference, type ServiceReference } from '../fields/addresses.ts';
import type { Configuration } from '../load.ts';
import { quote } from '../quote.ts';
import { ownAuthService } from '../records/auth-service.ts';
import { recordError } from '../records/conflicts.ts';
import type { Settings } from './settings.ts';

/** The settings that these notices are about. */
export type NamingSettings = Pick<Settings, 'serviceAddresses' | 'adminUsers' | 'host' | 'port' | 'kubernetes'>;

/** What a process knows about modules and users. */
interface Known {
  /** The modules that records can name, here or in other processes. */
  readonly modules: readonly string[];
  /** Those that run here and can be the service of a Mapping. */
  readonly services: readonly string[];
  /** Whether the users of the configuration are those of the auth service. */
  readonly checksUsers: boolean;
}

export function settingNotices(
  configuration: Configuration,
  settings: NamingSettings,
  { modules, services, checksUsers }: Known,
): readonly ConfigurationError[] {
  const references = referencesIn(configuration);
  return [
    ...addressNotices(references, settings, modules),
    ...(checksUsers ? adminNotices(configuration, settings) : []),
    ...references.filter((one) => isOfGateway(one, settings)).map(({ record }) => loopNotice(record, settings)),
    ...hostNotices(references, settings, services),
  ];
}

type ServiceRecord = Configuration['mappings' | 'authServices' | 'rateLimitServices'][number];

interface Reference {
  readonly record: ServiceRecord;
  readonly to: ServiceReference;
}

function referencesIn({ mappings, authServices, rateLimitServices }: Configuration): readonly Reference[] {
  return [...mappings, ...authServices, ...rateLimitServices].flatMap((record) => {
    const to = parseServiceReference(record.kind === 'AuthService' ? record.authService : record.service);
    return to === undefined ? [] : [{ record, to }];
  });
}

function addressNotices(
  references: readonly Reference[],
  { serviceAddresses }: NamingSettings,
  modules: readonly string[],
): readonly ConfigurationError[] {
  const named = new Set([...references.map(({ to }) => to.host), ...modules]);
  return unknownNames('SERVICE_ADDRESSES', Object.keys(serviceAddresses), named, 'which no record names');
}

function adminNotices(
  { users, authServices }: Configuration,
  { adminUsers }: NamingSettings,
): readonly ConfigurationError[] {
  const isHere = authServices.length > 0 && authServices.every(({ authService }) => authService === ownAuthService);
  const names = new Set(users.map(({ name }) => name));
  return isHere ? unknownNames('ADMIN_USERS', adminUsers, names, 'and no user has this name') : [];
}

function unknownNames(
  setting: string,
  given: readonly string[],
  known: ReadonlySet<string>,
  why: string,
): readonly ConfigurationError[] {
  const unknown = given.filter((name) => !known.has(name));
  return unknown.map((name) =>
    fileError(
      '<settings>',
      `${setting} contains ${quote(name)}, ${why}${didYouMean(name, known)}`,
      `Correct the name in ${setting}, or remove it.`,
    ),
  );
}

const defaultPorts = { http: 80, https: 443, grpc: 8081 };

function isOfGateway({ record, to }: Reference, settings: NamingSettings): boolean {
  if (record.kind === 'Mapping' && record.redirect !== undefined) return false;
  const { scheme = 'http', host, port = defaultPorts[scheme] } = to;
  const { serviceAddresses: addresses } = settings;
  const called = (Object.hasOwn(addresses, host) ? addresses[host] : undefined) ?? `${host}:${port}`;
  return [called].flat().some((address) => isOwn(address, settings));
}

function loopNotice(record: ServiceRecord, { port }: NamingSettings): ConfigurationError {
  const message = `calls the gateway itself, which listens on port ${port}`;
  return recordError(record, { message, remedy: 'Write the port of the service, or set another PORT.' });
}

/** Whether this process listens at the address, or at the one to which another name of this machine leads. */
function isOwn(address: string, { host, port }: NamingSettings): boolean {
  const [, called = '', digits] = /^\[?(.*?)\]?:(\d+)$/.exec(address) ?? [];
  if (Number(digits) !== port) return false;
  if (host === '0.0.0.0' || host === '::') return isLoopback(called);
  return called === host || (thisMachine.includes(called) && thisMachine.includes(host));
}

const thisMachine = ['localhost', '127.0.0.1', '::1'];

/** Comparing more names with each other would hold up requests during a reload. */
const comparisonsMax = 10_000;

/** A name alone that is nearly that of a module, or of a service with an address, means a host, which may be a mistake. */
function hostNotices(
  references: readonly Reference[],
  { serviceAddresses }: NamingSettings,
  services: readonly string[],
): readonly ConfigurationError[] {
  const own = { Mapping: services, AuthService: [ownAuthService], RateLimitService: ['ratelimit'] };
  const addresses = Object.keys(serviceAddresses);
  const alone = references.filter(
    ({ record, to: { scheme, host, port } }) =>
      scheme === undefined &&
      port === undefined &&
      !own[record.kind].includes(host) &&
      !Object.hasOwn(serviceAddresses, host),
  );
  if (alone.length * (addresses.length + services.length + 1) > comparisonsMax) return [];
  return alone.flatMap(({ record, to: { host } }) => {
    const guess = didYouMean(host, [...own[record.kind], ...addresses]);
    const remedy = `Correct the name, or write ${record.kind === 'RateLimitService' ? 'grpc' : 'http'}://${host} for a host.`;
    return guess === '' ? [] : [recordError(record, { message: `calls the host ${quote(host)}${guess}`, remedy })];
  });
}
