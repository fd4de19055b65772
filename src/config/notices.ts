/** What is odd about a configuration in the process that runs it: modules that are elsewhere, users that are missing. */
import type { ConfigurationError } from './errors.ts';
import { unreachableNotices } from './limits/unreachable.ts';
import type { Configuration } from './model.ts';
import { isDemoModule, type ModuleName, modulesNamedBy, type NamedModule } from './modules.ts';
import { fullName } from './records/conflicts.ts';
import type { Work } from './work.ts';

/** What of a process decides how its records are read. */
export interface NoticeContext {
  readonly modules: readonly ModuleName[];
  /** The modules come from an option, and not from the records alone. */
  readonly isChosen: boolean;
  readonly serviceAddresses: Readonly<Record<string, unknown>>;
  /** Undefined: a program handed the records in. */
  readonly directory: string | undefined;
}

export function* processNotices(
  configuration: Configuration,
  context: NoticeContext,
): Work<readonly ConfigurationError[]> {
  return [
    ...usersNotices(configuration, context),
    ...(context.modules.includes('gateway') ? yield* gatewayNotices(configuration, context) : []),
  ];
}

function usersNotices({ users }: Configuration, { modules, directory }: NoticeContext): ConfigurationError[] {
  if (!modules.includes('auth') || users.length > 0) return [];
  return [
    {
      source: placeOf(directory, 'users.yaml'),
      record: undefined,
      message: 'the auth service of this process has no users, so it refuses every password',
      remedy: 'Add one: frontdesk users add NAME',
    },
  ];
}

function* gatewayNotices(configuration: Configuration, context: NoticeContext): Work<ConfigurationError[]> {
  const named = modulesNamedBy(configuration);
  const isDemo = context.isChosen || Object.keys(configuration.demo).length > 0;
  return [
    ...(configuration.mappings.length === 0 && !context.modules.includes('api') ? [noMapping(context.directory)] : []),
    ...named.flatMap((one) => elsewhereNotice(one, context)),
    ...uncountedNotices(configuration),
    ...(yield* limiterNotices(named, configuration, context)),
    ...(isDemo ? [] : firstOfEach(named.filter(({ module }) => runsAsDemo(module, context))).map(demoNotice)),
  ];
}

function noMapping(directory: string | undefined): ConfigurationError {
  return {
    source: placeOf(directory, 'services'),
    record: undefined,
    message: 'there is no Mapping, so the gateway leads to no service',
    remedy: 'Write one: config/README.md shows how; frontdesk init writes a first configuration.',
  };
}

/** The name of a module that runs in another process, of which only a host name is known. */
function elsewhereNotice({ module, record }: NamedModule, context: NoticeContext): ConfigurationError[] {
  const { modules, serviceAddresses } = context;
  if (modules.includes(module) || Object.hasOwn(serviceAddresses, module)) return [];
  const scheme = module === 'ratelimit' ? 'grpc' : 'http';
  return [
    {
      source: record.source,
      record: fullName(record),
      message: `"${module}" does not run in this process, so ${scheme}://${module} is asked`,
      remedy: `Run it here (--only …,${module}; without --only a restart), set SERVICE_ADDRESSES=${module}=host:port, or write ${scheme}://${module}.`,
    },
  ];
}

/** One for all mappings: what is missing is one record. */
function uncountedNotices({ mappings, rateLimitServices }: Configuration): ConfigurationError[] {
  const labelled = mappings.find(({ labels }) => Object.keys(labels).length > 0);
  if (labelled === undefined || rateLimitServices.length > 0) return [];
  return [
    {
      source: labelled.source,
      record: fullName(labelled),
      message: 'labels are not counted, since there is no RateLimitService',
      remedy: 'Write a RateLimitService, as config/README.md shows, or remove the labels.',
    },
  ];
}

/** Where the limiter is another process, its limits are not known here. */
function* limiterNotices(
  named: readonly NamedModule[],
  configuration: Configuration,
  { modules }: NoticeContext,
): Work<ConfigurationError[]> {
  const [domain] = named.flatMap(({ record }) => (record.kind === 'RateLimitService' ? [record.domain] : []));
  return domain === undefined || !modules.includes('ratelimit') ? [] : yield* unreachableNotices(configuration, domain);
}

function runsAsDemo(module: ModuleName, { modules }: NoticeContext): boolean {
  return isDemoModule(module) && modules.includes(module);
}

function firstOfEach(named: readonly NamedModule[]): readonly NamedModule[] {
  return named.filter(({ module }, index) => named.findIndex((one) => one.module === module) === index);
}

function demoNotice({ module, record }: NamedModule): ConfigurationError {
  return {
    source: record.source,
    record: fullName(record),
    message: `"${module}" is a service of the demo, which now runs in this process`,
    remedy: `Write http://${module} for a service of your own with this name; start with --demo for the demo.`,
  };
}

function placeOf(directory: string | undefined, name: string) {
  return { file: directory === undefined ? '<options>' : `${directory}/${name}`, line: 1 };
}
