/** Envoy in front of the auth service, the limiter and the hotel module as processes: the chain that frontdesk has in one. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../support/programs/free-port.ts';
import { envoy } from '../support/programs/proxy-process.ts';
import type { Child } from './child.ts';
import { writeConfiguration } from './configuration.ts';
import { usageOf } from './process-usage.ts';
import { type Parts, startFrontdesk } from './servers.ts';

/** Four processes, whose CPU time counts together. */
export async function startEnvoyChain(port: number, parent: string, parts: Parts): Promise<Child> {
  const [auth, limits, hotel] = [await freePort(), await freePort(), await freePort()];
  const own = (module: string, env: Readonly<Record<string, string>>) => {
    const directory = join(parent, module);
    mkdirSync(directory);
    const configDir = writeConfiguration(directory, 'in-process', parts);
    return startFrontdesk(directory, { LOG_LEVEL: 'error', ...env }, ['--only', module], { configDir });
  };
  const services = [
    own('auth', { AUTH_PORT: String(auth) }),
    own('ratelimit', { RATELIMIT_PORT: String(limits) }),
    own('hotel', { PORT: String(hotel) }),
  ];
  const configFile = join(parent, 'envoy.json');
  writeFileSync(configFile, JSON.stringify(configurationOf({ port, auth, limits, hotel })));
  const proxy = spawn(envoy.command, envoy.args(configFile, parent), { stdio: ['ignore', 'ignore', 'inherit'] });
  return {
    process: proxy,
    async usage() {
      const all = [usageOf(proxy.pid ?? 0), ...(await Promise.all(services.map((service) => service.usage())))];
      const sum = (of: (usage: (typeof all)[number]) => number) => all.reduce((total, usage) => total + of(usage), 0);
      return { cpuMicros: sum(({ cpuMicros }) => cpuMicros), rssBytes: sum(({ rssBytes }) => rssBytes) };
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

const filters = 'type.googleapis.com/envoy.extensions.filters';

function configurationOf({ port, auth, limits, hotel }: Ports): object {
  return {
    static_resources: {
      listeners: [
        {
          name: 'edge',
          address: addressOf(port),
          filter_chains: [
            { filters: [{ name: 'envoy.filters.network.http_connection_manager', typed_config: manager(auth) }] },
          ],
        },
      ],
      clusters: [
        clusterOf('auth', auth),
        { ...clusterOf('limits', limits), ...speaksHttp2 },
        clusterOf('hotel', hotel),
      ],
    },
  };
}

function manager(auth: number): object {
  return {
    '@type': `${filters}.network.http_connection_manager.v3.HttpConnectionManager`,
    stat_prefix: 'edge',
    http_filters: [authFilter(auth), limitFilter, routerFilter],
    route_config: { virtual_hosts: [{ name: 'hotel', domains: ['*'], routes: [route] }] },
  };
}

function authFilter(port: number): object {
  return {
    name: 'envoy.filters.http.ext_authz',
    typed_config: {
      '@type': `${filters}.http.ext_authz.v3.ExtAuthz`,
      http_service: {
        server_uri: { uri: `http://127.0.0.1:${port}`, cluster: 'auth', timeout: '5s' },
        authorization_response: { allowed_upstream_headers: { patterns: [{ exact: 'x-travel-user' }] } },
      },
    },
  };
}

const limitFilter = {
  name: 'envoy.filters.http.ratelimit',
  typed_config: {
    '@type': `${filters}.http.ratelimit.v3.RateLimit`,
    domain: 'gateway',
    timeout: '1s',
    enable_x_ratelimit_headers: 'DRAFT_VERSION_03',
    rate_limit_service: {
      transport_api_version: 'V3',
      grpc_service: { envoy_grpc: { cluster_name: 'limits' } },
    },
  },
};

const routerFilter = {
  name: 'envoy.filters.http.router',
  typed_config: { '@type': `${filters}.http.router.v3.Router` },
};

const label = 'x-gateway-test-allow';
const route = {
  match: { prefix: '/' },
  route: {
    cluster: 'hotel',
    prefix_rewrite: '/',
    rate_limits: [{ actions: [{ request_headers: { header_name: label, descriptor_key: label } }] }],
  },
};

const speaksHttp2 = {
  typed_extension_protocol_options: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': 'type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions',
      explicit_http_config: { http2_protocol_options: {} },
    },
  },
};

function clusterOf(name: string, port: number): object {
  const endpoints = [{ lb_endpoints: [{ endpoint: { address: addressOf(port) } }] }];
  return { name, type: 'STATIC', load_assignment: { cluster_name: name, endpoints } };
}

function addressOf(port: number): object {
  return { socket_address: { address: '127.0.0.1', port_value: port } };
}
