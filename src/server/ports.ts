/** The ports on which a process or its threads listen, and whether they are free. */
import { createServer, type Server } from 'node:net';
import { type Settings, variableOf } from '#config';
import { codeOf, listenError } from '#foundation';
import { travelModules } from '#travel';
import type { Listeners, Setup } from './options.ts';

export type ListenerName = 'gateway' | 'gateway-tls' | 'redirect' | 'ratelimit' | 'ratelimit-http' | 'auth' | 'admin';

/** The address of a listener, and the names of the settings that define it. */
interface Binding {
  readonly host: string;
  /** Undefined when the listener is turned off. */
  readonly port: number | undefined;
  /** The names of the settings in the environment. */
  readonly hostSetting: string;
  readonly portSetting: string;
}

type PortOption =
  | 'port'
  | 'tlsPort'
  | 'httpRedirectPort'
  | 'authPort'
  | 'ratelimitPort'
  | 'ratelimitHttpPort'
  | 'adminPort';

export function bindingsOf(settings: Settings): Readonly<Record<ListenerName, Binding>> {
  const { host: defaultHost } = settings;
  const { ratelimitHost = defaultHost, authHost = defaultHost, adminHost = defaultHost } = settings;
  const binding = (option: PortOption, host: string, hostName: string): Binding => {
    const hostSetting = host === defaultHost ? 'HOST' : hostName;
    return { host, port: settings[option], hostSetting, portSetting: variableOf(option) };
  };
  return {
    gateway: binding('port', defaultHost, 'HOST'),
    'gateway-tls': binding('tlsPort', defaultHost, 'HOST'),
    redirect: binding('httpRedirectPort', defaultHost, 'HOST'),
    ratelimit: binding('ratelimitPort', ratelimitHost, 'RATELIMIT_HOST'),
    'ratelimit-http': binding('ratelimitHttpPort', ratelimitHost, 'RATELIMIT_HOST'),
    auth: binding('authPort', authHost, 'AUTH_HOST'),
    admin: binding('adminPort', adminHost, 'ADMIN_HOST'),
  };
}

/** The listeners that a process opens if they have a port, from first to last. */
export function listenersOf({ has, services }: Setup): readonly ListenerName[] {
  const servesHttp = has('gateway') || travelModules.some(has) || Object.keys(services).length > 0;
  const names: readonly (readonly [ListenerName, isServed: boolean])[] = [
    ['ratelimit', has('ratelimit')],
    ['ratelimit-http', has('ratelimit')],
    ['auth', has('auth')],
    ['gateway', servesHttp],
    ['gateway-tls', has('gateway')],
    ['redirect', has('gateway')],
    // Opened last, because a probe that succeeds makes a load balancer send requests to the other ports.
    ['admin', true],
  ];
  return names.flatMap(([name, isServed]) => (isServed ? [name] : []));
}

/** The settings of another thread, which listens on the same ports, also on those that the system picked for 0. */
export function withPortsOf<S extends Settings>(settings: S, listeners: Listeners): S {
  return {
    ...settings,
    port: listeners.gateway?.port ?? settings.port,
    tlsPort: listeners.gatewayTls?.port ?? settings.tlsPort,
    httpRedirectPort: listeners.redirect?.port ?? settings.httpRedirectPort,
    authPort: listeners.auth?.port ?? settings.authPort,
    ratelimitPort: listeners.ratelimit?.port ?? settings.ratelimitPort,
    ratelimitHttpPort: listeners.ratelimitHttp?.port ?? settings.ratelimitHttpPort,
  };
}

/** Whether several threads of this process share a port that the system picks. They do not share the admin port. */
export function sharesPickedPort(setup: Setup): boolean {
  const bindings = bindingsOf(setup.settings);
  return listenersOf(setup).some((name) => name !== 'admin' && bindings[name].port === 0);
}

/**
 * Listens on each given port alone, and closes it again: a port on which several threads listen would also be open to
 * another process that listens in the same way. Rejects with a user-facing Error, which names all ports that other
 * processes use.
 */
export async function claimPorts(setup: Setup): Promise<void> {
  const bindings = bindingsOf(setup.settings);
  const settingsOfPorts = new Map<string, string>();
  const servers: Server[] = [];
  const taken: Error[] = [];
  try {
    for (const name of listenersOf(setup)) {
      const { port, ...binding } = bindings[name];
      // What the system picks for 0 is free only for whoever listens on it and goes on.
      if (port === undefined || port === 0) continue;
      rejectSamePort(settingsOfPorts, { ...binding, port });
      settingsOfPorts.set(`${binding.host} ${port}`, binding.portSetting);
      const server = await listenAlone({ ...binding, port }).catch((error: Error) => {
        if (codeOf(error) !== 'EADDRINUSE') throw error;
        taken.push(error);
      });
      if (server !== undefined) servers.push(server);
    }
  } finally {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
  if (taken.length > 0) throw new Error(taken.map(({ message }) => message).join('\n'));
}

function listenAlone(address: Parameters<typeof listenError>[1]): Promise<Server> {
  const { host, port } = address;
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => reject(listenError(cause, address)));
    server.listen({ host, port, exclusive: true }, () => resolve(server));
  });
}

/** `portSettings` has the settings of the open ports, by host and port. */
export function rejectSamePort(
  portSettings: ReadonlyMap<string, string>,
  { host, port, portSetting }: Pick<Binding, 'host' | 'port' | 'portSetting'>,
): void {
  const other = portSettings.get(`${host} ${port}`);
  if (other !== undefined)
    throw new Error(`${other} and ${portSetting} are both ${port}: give one of them another port`);
}
