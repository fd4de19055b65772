/** Starts Envoy, the auth service, the limiter and the hotel module as four processes. frontdesk runs all of it in one. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  envoyCluster,
  envoyConfiguration,
  httpFilter,
  limitCluster,
  limitFilter,
} from '../../support/programs/envoy-configuration.ts';
import { freePort } from '../../support/programs/free-port.ts';
import { envoy } from '../../support/programs/proxy-process.ts';
import type { Child } from './child.ts';
import { writeConfiguration } from './configuration.ts';
import { usageOf } from './process-usage.ts';
import { type Backends, startFrontdesk } from './start-servers.ts';

export async function startEnvoy(port: number, parent: string, backends: Backends): Promise<Child> {
  const [auth, limits, hotel] = [await freePort(), await freePort(), await freePort()];
  const startModule = (module: string, env: Readonly<Record<string, string>>) => {
    const directory = join(parent, module);
    mkdirSync(directory);
    const configDir = writeConfiguration(directory, 'in-process', backends);
    return startFrontdesk(directory, { LOG_LEVEL: 'error', ...env }, { modules: module, configDir });
  };
  const services = [
    startModule('auth', { AUTH_PORT: String(auth) }),
    startModule('ratelimit', { RATELIMIT_PORT: String(limits) }),
    startModule('hotel', { PORT: String(hotel) }),
  ];
  const configFile = join(parent, 'envoy.json');
  writeFileSync(configFile, configurationOf({ port, auth, limits, hotel }));
  const proxy = spawn(envoy.command, envoy.args(configFile, parent), { stdio: ['ignore', 'ignore', 'inherit'] });
  return {
    process: proxy,
    async usage() {
      const usages = [usageOf(proxy.pid ?? 0), ...(await Promise.all(services.map((service) => service.usage())))];
      const sum = (name: 'cpuMicros' | 'rssBytes') => usages.reduce((total, usage) => total + usage[name], 0);
      return { cpuMicros: sum('cpuMicros'), rssBytes: sum('rssBytes') };
    },
    async stop() {
      if (proxy.exitCode === null && proxy.kill()) await once(proxy, 'exit');
      await Promise.all(services.map((service) => service.stop()));
    },
  };
}

interface Ports {
  readonly port: number;
  readonly auth: number;
  readonly limits: number;
  readonly hotel: number;
}

const label = 'x-gateway-test-allow';

function configurationOf({ port, auth, limits, hotel }: Ports): string {
  return envoyConfiguration({
    port,
    target: hotel,
    filters: [
      authFilter(auth),
      limitFilter({ domain: 'gateway', timeout: '1s', enable_x_ratelimit_headers: 'DRAFT_VERSION_03' }),
    ],
    route: {
      prefix_rewrite: '/',
      rate_limits: [{ actions: [{ request_headers: { header_name: label, descriptor_key: label } }] }],
    },
    clusters: [envoyCluster('auth', auth), limitCluster(limits)],
  });
}

function authFilter(port: number): object {
  return httpFilter('ext_authz', 'ext_authz.v3.ExtAuthz', {
    http_service: {
      server_uri: { uri: `http://127.0.0.1:${port}`, cluster: 'auth', timeout: '5s' },
      authorization_response: { allowed_upstream_headers: { patterns: [{ exact: 'x-travel-user' }] } },
    },
  });
}
