/** Notices about a valid configuration that may not work in this process: missing modules and users, unused limits. */
import { type ConfigurationError, didYouMean, fileError } from './errors.ts';
import type { LimitDescriptor, LimitDomain } from './limits/domains.ts';
import { reachedDescriptors } from './limits/reached.ts';
import type { Configuration } from './load.ts';
import { matchNotices } from './match-notices.ts';
import { quote } from './quote.ts';
import { fullName } from './records/conflicts.ts';
import { callsService, type Mapping } from './records/mapping.ts';
import type { GatewayRecord } from './records/record.ts';
import { type NamingSettings, settingNotices } from './settings/setting-notices.ts';
import { modulesNamedBy, type NamedModule, withoutAddress } from './this-process.ts';
import { nextTurn } from './turns.ts';

/** The properties of a process that affect the meaning of its records. */
export interface NoticeContext {
  /** The modules that run in it. */
  readonly modules: readonly string[];
  /** All modules that can be the service of a Mapping, also those that run elsewhere. */
  readonly httpModules: readonly string[];
  /** The modules of the demo, which runs in it because of a record. */
  readonly demoModules: readonly string[];
  /** Whether requests reach a module without a Mapping. */
  readonly routesWithoutMapping: boolean;
  /** True when an option selected the modules, not the records alone. */
  readonly isChosen: boolean;
  readonly settings: NamingSettings;
  /** Whether the limiter of this process decides nothing while its counters cannot be reached. */
  readonly limiterFailsClosed: boolean;
  readonly trustedProxies: readonly string[];
  /** Undefined when a program passed the records. */
  readonly directory: string | undefined;
}

/** Requests can run in between. */
export async function processNotices(
  configuration: Configuration,
  context: NoticeContext,
): Promise<readonly ConfigurationError[]> {
  return [
    ...usersNotices(configuration, context),
    ...(context.modules.includes('gateway') ? await gatewayNotices(configuration, context) : []),
  ];
}

function usersNotices(configuration: Configuration, context: NoticeContext): ConfigurationError[] {
  const { modules, directory, settings } = context;
  if (!modules.includes('auth') || configuration.users.length > 0) return [];
  // With a cluster, the auth service runs even if no record names it yet.
  if (settings.kubernetes && !modulesNamedBy(configuration, []).some(({ module }) => module === 'auth')) return [];
  const message = 'the auth service in this process has no users, so it rejects every password';
  return [fileError(fileIn(directory, 'users.yaml'), message, 'Add one: frontdesk users add NAME')];
}

async function gatewayNotices(configuration: Configuration, context: NoticeContext): Promise<ConfigurationError[]> {
  const { modules, settings } = context;
  const named = modulesNamedBy(configuration, context.httpModules);
  const elsewhere = withoutAddress(named, (module) => modules.includes(module), settings.serviceAddresses);
  const ofMatches = matchNotices(configuration, context.trustedProxies.length > 0);
  await nextTurn();
  const isDemo = context.isChosen || Object.keys(configuration.demo).length > 0;
  return [
    ...(configuration.mappings.length === 0 && !context.routesWithoutMapping ? [noMapping(context)] : []),
    ...elsewhere.map(elsewhereNotice),
    ...uncountedNotices(configuration),
    ...unusedProviderNotices(configuration),
    ...ofMatches,
    ...settingNotices(configuration, settings, {
      modules: [...context.httpModules, 'auth', 'ratelimit', 'gateway'],
      services: context.httpModules.filter((module) => modules.includes(module)),
      checksUsers: modules.includes('auth'),
    }),
    ...limiterNotices(named, configuration, context),
    ...(isDemo ? [] : demoNotices(named, context)),
  ];
}

function noMapping({ directory, settings }: NoticeContext): ConfigurationError {
  const message = 'there is no Mapping, so the gateway routes no requests';
  if (settings.kubernetes) return fileError('the cluster', message, applyMapping);
  const remedy = 'Write one as shown in config/README.md, or create a first configuration with frontdesk init.';
  return fileError(fileIn(directory, 'services'), message, remedy);
}

const applyMapping =
  'Apply one as shown in config/README.md, as a resource (frontdesk crds) or in an annotation of a Service, or a route ' +
  'of a Gateway as shown in config/gateway-api.md.';

/**
 * Finds routes that are open perhaps by mistake: all of them without an AuthService, and those through which a client gets
 * everything that another mapping guards. `check` reports them, and a start does not, because many are open on purpose.
 */
export function openRouteNotices({ mappings, authServices }: Configuration): readonly ConfigurationError[] {
  const forwarding = mappings.filter((mapping) => callsService(mapping) && !mapping.shadow);
  const guarded = forwarding.filter(({ bypassAuth }) => !bypassAuth);
  const [first] = guarded;
  if (first === undefined) return [];
  if (authServices.length === 0)
    return [noticeOf(first, 'needs no credentials, because there is no AuthService', addAuth(first))];
  const guardedBelow = indexByTarget(guarded);
  return forwarding.flatMap((mapping) => {
    const other = mapping.bypassAuth ? openedBy(mapping, guardedBelow) : undefined;
    return other === undefined ? [] : [{ ...noticeOf(mapping, besideGuarded(other), openLess), other: other.source }];
  });
}

/** By a service and a path of it: mappings that lead to the path or below it, the first for each way of renaming paths. */
type TargetIndex = ReadonlyMap<string, ReadonlyMap<string, Mapping>>;

function indexByTarget(mappings: readonly Mapping[]): TargetIndex {
  const index = new Map<string, Map<string, Mapping>>();
  for (const mapping of mappings) {
    if (mapping.prefixMatch === 'regex' || mapping.regexRewrite !== undefined) continue;
    const segments = targetOf(mapping).split('/');
    for (const count of segments.keys()) {
      const key = JSON.stringify([mapping.service, segments.slice(0, count + 1).join('/')]);
      const found = index.get(key) ?? new Map<string, Mapping>();
      const renaming = renamingOf(mapping);
      index.set(key, found.set(renaming, found.get(renaming) ?? mapping));
    }
  }
  return index;
}

/**
 * Returns a guarded mapping to whose every path of the service an open one leads too, under other names: `/public`, which is
 * replaced by `/`, beside a guarded `/`. Under the same names, the order of the mappings decides what is open.
 */
function openedBy(open: Mapping, guardedBelow: TargetIndex): Mapping | undefined {
  if (open.prefixMatch !== 'segments' || open.regexRewrite !== undefined) return undefined;
  const beside = guardedBelow.get(JSON.stringify([open.service, targetOf(open)])) ?? new Map<string, Mapping>();
  const own = renamingOf(open);
  return Array.from(beside).find(([renaming]) => renaming !== own)?.[1];
}

/** The path at the service, without a slash at its end. */
function targetOf({ prefix, rewrite }: Mapping): string {
  return (rewrite === '' ? prefix : rewrite).replace(/\/$/, '');
}

/** What a mapping replaces at the start of paths, and by what: `/v1` by nothing, for `/v1/orders` and `/orders`. */
function renamingOf(mapping: Mapping): string {
  const from = mapping.prefix.replace(/\/$/, '').split('/');
  const to = targetOf(mapping).split('/');
  while (from.length > 1 && to.length > 1 && from.at(-1) === to.at(-1)) {
    from.pop();
    to.pop();
  }
  return JSON.stringify([from, to]);
}

function addAuth({ gatewayRoute }: Mapping): string {
  const place = gatewayRoute === undefined ? 'the mappings' : 'the mappings, or in RoutePolicies of the routes,';
  return `Add an AuthService as shown in config/README.md, or set bypass_auth: true in ${place} that are open on purpose.`;
}

function besideGuarded({ name }: Mapping): string {
  return `is open, and leads to every path of the service for which Mapping ${name} requires credentials`;
}

const openLess = 'Write rewrite: "" to open only the paths of its prefix, or another path. Or remove bypass_auth.';

function elsewhereNotice({ module, record }: NamedModule): ConfigurationError {
  const scheme = module === 'ratelimit' ? 'grpc' : 'http';
  const message = `"${module}" does not run in this process, so ${scheme}://${module} is called`;
  const remedy = `Run it here (add it to --only), set SERVICE_ADDRESSES=${module}=host:port, or write ${scheme}://${module}.`;
  return noticeOf(record, message, remedy);
}

/** Returns one notice for all labelled mappings, because a single record is missing. */
function uncountedNotices({ mappings, rateLimitServices }: Configuration): ConfigurationError[] {
  const labelled = mappings.find(({ labels }) => Object.keys(labels).length > 0);
  if (labelled === undefined || rateLimitServices.length > 0) return [];
  const remedy = 'Add a RateLimitService as shown in config/README.md, or remove the labels.';
  return [noticeOf(labelled, 'labels have no effect because there is no RateLimitService', remedy)];
}

function unusedProviderNotices({ jwtProviders, authServices }: Configuration): ConfigurationError[] {
  const used = new Set(authServices.flatMap(({ providers }) => providers));
  return jwtProviders
    .filter(({ name }) => !used.has(name))
    .map((record) => {
      const remedy = `List it in an AuthService with auth_service: auth, as providers: [${record.name}].`;
      return noticeOf(record, 'no AuthService accepts its tokens', remedy);
    });
}

/** Checks limits only if the limiter runs in this process. Otherwise its limits are unknown here. */
function limiterNotices(
  named: readonly NamedModule[],
  configuration: Configuration,
  { modules, limiterFailsClosed }: NoticeContext,
): ConfigurationError[] {
  const [service] = named.flatMap(({ record }) => (record.kind === 'RateLimitService' ? [record] : []));
  if (service === undefined || !modules.includes('ratelimit')) return [];
  return [
    ...(limiterFailsClosed && !service.failureModeDeny ? [failsClosedNotice(service)] : []),
    ...unreachableNotices(configuration, service.domain),
  ];
}

function failsClosedNotice(record: GatewayRecord): ConfigurationError {
  const message =
    'RATELIMIT_FAIL_OPEN=false takes precedence over failure_mode_deny: false, so limited requests get 503 while Redis does not respond';
  return noticeOf(record, message, 'Write failure_mode_deny: true, or set RATELIMIT_FAIL_OPEN=true to let them pass.');
}

/** Reports the first record that names each service of the demo. */
function demoNotices(named: readonly NamedModule[], { modules, demoModules }: NoticeContext): ConfigurationError[] {
  const isFirst = (one: NamedModule) => named.find(({ module }) => module === one.module) === one;
  const first = named.filter((one) => demoModules.includes(one.module) && modules.includes(one.module) && isFirst(one));
  return first.map(({ module, record }) => {
    const message = `"${module}" is a service of the demo, which runs in this process because this record names it`;
    const remedy = `Write http://${module} to call your own service of this name, or start with --demo to run the demo.`;
    return noticeOf(record, message, remedy);
  });
}

function fileIn(directory: string | undefined, name: string): string {
  return directory === undefined ? '<options>' : `${directory}/${name}`;
}

/** Compares the labels and limits of a gateway and limiter in the same process. The gateway uses `domain`. */
function unreachableNotices({ mappings, limits }: Configuration, domain: string): ConfigurationError[] {
  const labelled = mappings.filter(callsService);
  const reached = new Set<LimitDescriptor>();
  const used = limits.find((one) => one.domain === domain);
  for (const mapping of labelled) {
    for (const group of mapping.labels[domain] ?? [])
      for (const one of reachedDescriptors(group, mapping.service, used?.descriptors ?? [])) reached.add(one);
  }
  const keys = used && keysOf(used.descriptors);
  return [
    ...labelled.flatMap((mapping) => labelNotices(mapping, domain, keys, limits)),
    ...limits.flatMap((one) => (one === used ? limitNotices(one, reached) : [domainNotice(one, domain)])),
  ];
}

function limitNotices(
  { domain, descriptors }: LimitDomain,
  reached: ReadonlySet<LimitDescriptor>,
): ConfigurationError[] {
  const walk = (some: readonly LimitDescriptor[], above: string): ConfigurationError[] =>
    some.flatMap((descriptor) => {
      const { key, limits, descriptors: below, source } = descriptor;
      // Omits values, which may be secrets. The line number identifies the descriptor.
      const path = `${above}${key}`;
      const isUnreached = (limits.length > 0 || below.length === 0) && !reached.has(descriptor);
      return [
        ...(isUnreached
          ? [
              {
                source,
                record: `domain ${domain}`,
                message: `no Mapping has labels that reach ${path}`,
                remedy: checkKeys,
              },
            ]
          : []),
        ...walk(below, `${path} › `),
      ];
    });
  return walk(descriptors, '');
}

const checkKeys = 'Compare its keys, values and their order with the labels of the mappings, or remove it.';

function domainNotice({ domain, source }: LimitDomain, used: string): ConfigurationError {
  const message = `the gateway uses the domain ${quote(used)}, never this one`;
  const remedy = 'Rename one of the two, or ignore this if other proxies use these limits.';
  return { source, record: `domain ${domain}`, message, remedy };
}

/** `keys` are the keys of the domain that the gateway uses, or undefined if this domain has no limits. */
function labelNotices(
  mapping: Mapping,
  used: string,
  keys: ReadonlySet<string> | undefined,
  limits: readonly LimitDomain[],
): ConfigurationError[] {
  return Object.entries(mapping.labels).flatMap(([domain, groups]) => {
    if (keys === undefined || domain !== used) {
      const names = limits.map((one) => one.domain);
      const message = `labels are for the domain ${quote(domain)}, which has no limits here${didYouMean(domain, names)}`;
      return [noticeOf(mapping, message, `The gateway uses ${quote(used)}, whose limits are in ratelimit/*.yaml.`)];
    }
    const unknown = new Set(
      groups.flatMap(({ labels }) => labels.map(({ name }) => name)).filter((key) => !keys.has(key)),
    );
    return [...unknown].map((key) =>
      noticeOf(
        mapping,
        `no limit of the domain ${quote(domain)} has the key ${quote(key)}${didYouMean(key, [...keys])}`,
        'Correct the label, add a limit for it, or remove it.',
      ),
    );
  });
}

function keysOf(descriptors: readonly LimitDescriptor[]): Set<string> {
  return new Set(descriptors.flatMap(({ key, descriptors: below }) => [key, ...keysOf(below)]));
}

function noticeOf(record: GatewayRecord, message: string, remedy: string): ConfigurationError {
  return { source: record.source, record: fullName(record), message, remedy };
}
