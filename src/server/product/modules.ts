/** The modules of frontdesk, and those that a process runs. */
import { type Configuration, type gatewaySettings, modulesNamedBy, type NoticeContext, type SettingsOf } from '#config';
import { isTravelModule, travelModules } from '#travel';

/** They can share a process or run in separate ones. Records refer to them as services by these names. */
export const moduleNames = ['gateway', 'auth', 'ratelimit', ...travelModules] as const;
export type ModuleName = (typeof moduleNames)[number];

/** The modules that can be the service of a Mapping. */
export const httpModules = [...travelModules, 'auth'] as const;

export interface ModuleChoice {
  /** @default all modules with `demo`, otherwise the gateway and the modules that the records name */
  readonly only?: readonly ModuleName[] | undefined;
  readonly demo?: boolean | undefined;
}

/** Whether an empty database is filled with the demo data: as an option says, or if a service of the demo was chosen. */
export function usesDemoData({ only = [], demo = only.some(isTravelModule) }: ModuleChoice): boolean {
  return demo;
}

/**
 * Chooses the modules to run. A module whose address is among `serviceAddresses` runs in another process. With records
 * from a cluster, only frontdesk's own modules run.
 */
export function chooseModules(
  { only, demo = false }: ModuleChoice,
  configuration: Configuration | undefined,
  { serviceAddresses, kubernetes }: Pick<NoticeSettings, 'serviceAddresses' | 'kubernetes'>,
): readonly ModuleName[] {
  if (only !== undefined) return only;
  if (demo) return moduleNames;
  // Its records come later, and may name any of them.
  if (kubernetes || configuration === undefined) return ['gateway', 'auth', 'ratelimit'];
  const named = new Set<string>(modulesNamedBy(configuration, httpModules).map(({ module }) => module));
  return moduleNames.filter(
    (name) => name === 'gateway' || (named.has(name) && !Object.hasOwn(serviceAddresses, name)),
  );
}

/** What notices say about a process depends on these facts about its modules. */
export function moduleFacts(modules: readonly ModuleName[]) {
  return { modules, httpModules, demoModules: travelModules, routesWithoutMapping: modules.includes('api') };
}

/** The settings on which notices depend. */
export type NoticeSettings = Pick<
  SettingsOf<typeof gatewaySettings>,
  | 'serviceAddresses'
  | 'adminUsers'
  | 'host'
  | 'port'
  | 'kubernetes'
  | 'trustedProxies'
  | 'redisUrl'
  | 'ratelimitFailOpen'
>;

/** Describes a process with these modules for notices about its configuration. */
export function noticeContextOf(
  modules: readonly ModuleName[],
  settings: NoticeSettings,
  more: Pick<NoticeContext, 'isChosen' | 'directory'>,
): NoticeContext {
  const limiterFailsClosed = settings.redisUrl !== undefined && !settings.ratelimitFailOpen;
  return { ...moduleFacts(modules), settings, trustedProxies: settings.trustedProxies, limiterFailsClosed, ...more };
}
