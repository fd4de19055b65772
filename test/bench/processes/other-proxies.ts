/** Starts nginx and Envoy, configured to do what frontdesk does. */
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  envoyCluster,
  envoyConfiguration,
  httpFilter,
  limitCluster,
  limitFilter,
} from '../../support/programs/envoy-configuration.ts';
import { freePort } from '../../support/programs/free-port.ts';
import { envoy, nginx, type ProxyProgram, startProxy } from '../../support/programs/proxy-process.ts';
import type { MeasuredServer, Usage } from './child.ts';
import { type Ports, writeConfiguration } from './configuration.ts';
import { startFrontdesk } from './start-servers.ts';

/** nginx in front of the upstream, with frontdesk's auth service. It runs as one process, like the other proxies. */
export function startNginx(port: number, _directory: string, { upstreamPort, authPort }: Ports) {
  const configuration = `
    upstream service { server 127.0.0.1:${upstreamPort}; keepalive 64; }
    upstream auth { server 127.0.0.1:${authPort}; keepalive 64; }
    server {
      listen 127.0.0.1:${port};
      client_max_body_size 0;
      keepalive_requests 1000000000;
      location /proxied/ {
        auth_request /auth;
        auth_request_set $user $upstream_http_x_travel_user;
        proxy_set_header X-Travel-User $user;
        proxy_set_header Connection "";
        proxy_http_version 1.1;
        proxy_pass http://service/;
      }
      location = /auth {
        internal;
        proxy_pass_request_body off;
        proxy_set_header Content-Length "";
        proxy_set_header Connection "";
        proxy_http_version 1.1;
        proxy_pass http://auth;
      }
    }`;
  return startMeasured(nginx, configuration, port);
}

/** Envoy, the auth service, the limiter and the hotel module as four processes. frontdesk runs all of it in one. */
export async function startEnvoy(port: number, parent: string, ports: Ports): Promise<MeasuredServer> {
  const [auth, limits, hotel] = [await freePort(), await freePort(), await freePort()];
  const startModule = (module: string, portSetting: string, modulePort: number) => {
    const directory = join(parent, module);
    mkdirSync(directory);
    const configDir = writeConfiguration(directory, 'in-process', ports);
    return startFrontdesk(directory, { CONFIG_DIR: configDir, [portSetting]: String(modulePort) }, [module]);
  };
  const servers = [
    startModule('auth', 'AUTH_PORT', auth),
    startModule('ratelimit', 'RATELIMIT_PORT', limits),
    startModule('hotel', 'PORT', hotel),
    await startMeasured(envoy, envoyFor({ port, auth, limits, hotel }), port),
  ];
  return {
    async usage() {
      const usages = await Promise.all(servers.map((server) => server.usage()));
      const sum = (name: 'cpuMicros' | 'rssBytes') => usages.reduce((total, usage) => total + usage[name], 0);
      return { cpuMicros: sum('cpuMicros'), rssBytes: sum('rssBytes') };
    },
    async stop() {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}

const label = 'x-gateway-test-allow';

function envoyFor({ port, auth, limits, hotel }: Readonly<Record<'port' | 'auth' | 'limits' | 'hotel', number>>) {
  const authFilter = httpFilter('ext_authz', 'ext_authz.v3.ExtAuthz', {
    http_service: {
      server_uri: { uri: `http://127.0.0.1:${auth}`, cluster: 'auth', timeout: '5s' },
      authorization_response: { allowed_upstream_headers: { patterns: [{ exact: 'x-travel-user' }] } },
    },
  });
  return envoyConfiguration({
    port,
    target: hotel,
    filters: [
      authFilter,
      limitFilter({ domain: 'gateway', timeout: '1s', enable_x_ratelimit_headers: 'DRAFT_VERSION_03' }),
    ],
    route: {
      prefix_rewrite: '/',
      rate_limits: [{ actions: [{ request_headers: { header_name: label, descriptor_key: label } }] }],
    },
    clusters: [envoyCluster('auth', auth), limitCluster(limits)],
  });
}

export async function startMeasured(
  program: ProxyProgram,
  configuration: string,
  port: number,
): Promise<MeasuredServer> {
  const { pid, remove } = await startProxy(program, configuration, port);
  return { usage: async () => usageOf(pid), stop: remove };
}

/** Reads fields 14, 15 and 24 of proc(5)'s stat. The name before them ends with the last bracket. */
function usageOf(pid: number | undefined): Usage {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user = 0, system = 0, pages = 0] = [11, 12, 21].map((index) => Number(fields[index]));
  return { cpuMicros: (user + system) * microsPerTick, rssBytes: pages * 4096 };
}

/** USER_HZ is 100 on all Linux systems. */
const microsPerTick = 10_000;
