/** Notices about a valid configuration that may not work in this process, such as missing modules or users. */
import { type ConfigurationError, fileError } from './errors.ts';
import { unreachableNotices } from './limits/unreachable.ts';
import type { Configuration } from './model.ts';
import { isDemoModule, type ModuleName, modulesNamedBy, type NamedModule } from './modules.ts';
import { fullName } from './records/conflicts.ts';
import type { Work } from './work.ts';

/** The properties of a process that affect the meaning of its records. */
export interface NoticeContext {
  readonly modules: readonly ModuleName[];
  /** True when an option selected the modules, not the records alone. */
  readonly isChosen: boolean;
  readonly serviceAddresses: Readonly<Record<string, unknown>>;
  /** Undefined when a program passed the records. */
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
  const message = 'the auth service in this process has no users, so it rejects every password';
  return [fileError(fileIn(directory, 'users.yaml'), message, 'Add one: frontdesk users add NAME')];
}

function* gatewayNotices(configuration: Configuration, context: NoticeContext): Work<ConfigurationError[]> {
  const named = modulesNamedBy(configuration);
  const isDemo = context.isChosen || Object.keys(configuration.demo).length > 0;
  return [
    ...(configuration.mappings.length === 0 && !context.modules.includes('api') ? [noMapping(context.directory)] : []),
    ...named.flatMap((one) => elsewhereNotice(one, context)),
    ...uncountedNotices(configuration),
    ...(yield* limiterNotices(named, configuration, context)),
    ...(isDemo ? [] : demoNotices(named, context)),
  ];
}

function noMapping(directory: string | undefined): ConfigurationError {
  const remedy = 'Write one as shown in config/README.md, or create a first configuration with frontdesk init.';
  return fileError(fileIn(directory, 'services'), 'there is no Mapping, so the gateway routes no requests', remedy);
}

/** Reports a record that names a module which does not run here and whose address is not configured. */
function elsewhereNotice({ module, record }: NamedModule, context: NoticeContext): ConfigurationError[] {
  const { modules, serviceAddresses } = context;
  if (modules.includes(module) || Object.hasOwn(serviceAddresses, module)) return [];
  const scheme = module === 'ratelimit' ? 'grpc' : 'http';
  return [
    {
      source: record.source,
      record: fullName(record),
      message: `"${module}" does not run in this process, so ${scheme}://${module} is called`,
      remedy: `Run it here (add it to --only, or restart if --only is not used), set SERVICE_ADDRESSES=${module}=host:port, or write ${scheme}://${module}.`,
    },
  ];
}

/** Returns one notice for all labelled mappings, because a single record is missing. */
function uncountedNotices({ mappings, rateLimitServices }: Configuration): ConfigurationError[] {
  const labelled = mappings.find(({ labels }) => Object.keys(labels).length > 0);
  if (labelled === undefined || rateLimitServices.length > 0) return [];
  return [
    {
      source: labelled.source,
      record: fullName(labelled),
      message: 'labels have no effect because there is no RateLimitService',
      remedy: 'Add a RateLimitService as shown in config/README.md, or remove the labels.',
    },
  ];
}

/** Checks limits only if the limiter runs in this process. Otherwise its limits are unknown here. */
function* limiterNotices(
  named: readonly NamedModule[],
  configuration: Configuration,
  { modules }: NoticeContext,
): Work<ConfigurationError[]> {
  const [domain] = named.flatMap(({ record }) => (record.kind === 'RateLimitService' ? [record.domain] : []));
  return domain === undefined || !modules.includes('ratelimit') ? [] : yield* unreachableNotices(configuration, domain);
}

/** Reports the first record that names each service of the demo. */
function demoNotices(named: readonly NamedModule[], { modules }: NoticeContext): ConfigurationError[] {
  const isFirst = (one: NamedModule) => named.find(({ module }) => module === one.module) === one;
  const first = named.filter((one) => isDemoModule(one.module) && modules.includes(one.module) && isFirst(one));
  return first.map(({ module, record }) => ({
    source: record.source,
    record: fullName(record),
    message: `"${module}" is a service of the demo, which runs in this process because this record names it`,
    remedy: `Write http://${module} to call your own service of this name, or start with --demo to run the demo.`,
  }));
}

function fileIn(directory: string | undefined, name: string): string {
  return directory === undefined ? '<options>' : `${directory}/${name}`;
}
