/**
 * The gateways whose throughput is measured, with their configurations. All forward `/proxied/1024` to `/1024` of the
 * same upstream, keep their connections to it open, write no access log, and use all cores if they can.
 */
import { createHash } from 'node:crypto';
import { cpSync, realpathSync, writeFileSync } from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { envoyConfiguration, httpFilter } from '../../support/programs/envoy-configuration.ts';
import { findProgram, isInstalled } from '../../support/programs/installed.ts';
import { caddy, envoyWith, nginxWith, type ProxyProgram, startProxy } from '../../support/programs/proxy-process.ts';
import { type Child, root, startChild } from '../processes/child.ts';
import type { Ports } from '../processes/configuration.ts';
import { coreCount } from '../processes/cores.ts';
import { benchServer, frontdeskWith } from '../processes/start-servers.ts';

export interface MeasuredGateway {
  /** The name, followed by what it does besides forwarding. */
  readonly title: string;
  /** The program that must be on the PATH. @default none */
  readonly program?: string;
  readonly hasAuth: boolean;
  readonly start: StartGateway;
}

type StartGateway = (port: number, directory: string, ports: Ports) => Stoppable | Promise<Stoppable>;

export interface Stoppable {
  readonly stop: () => Promise<void>;
}

/** Credentials with the cheapest hash that each program offers, and a limit for each label that is never exhausted. */
const sha1User = `demo:{SHA}${createHash('sha1').update('demo').digest('base64')}`;
const bcryptUser = 'demo $2a$14$i3khpAh17g1NsUgzqN.n2e83OEIrRR9u0qXbpmz/ICeq6YCtfTGWi';
const userHeader = 'X-Travel-User';
const labelHeader = 'X-Gateway-Test-Allow';
const limit = 1_000_000;
/** Enough for each of 1,000 clients, so that none is opened for one request. */
const idleConnections = 1024;

export const gateways: readonly MeasuredGateway[] = [
  { title: 'frontdesk', hasAuth: false, start: frontdeskWith('proxy', { THREADS: String(coreCount) }) },
  { title: 'frontdesk in one thread', hasAuth: false, start: frontdeskWith('proxy', { THREADS: '1' }) },
  { title: 'nginx', program: 'nginx', hasAuth: false, start: startNginx(false) },
  { title: 'Envoy', program: 'envoy', hasAuth: false, start: startEnvoy(false) },
  { title: 'Caddy', program: 'caddy', hasAuth: false, start: startCaddy(false) },
  { title: 'Traefik', program: 'traefik', hasAuth: false, start: startTraefik(false) },
  { title: '@fastify/http-proxy', hasAuth: false, start: startHttpProxy(1) },
  { title: '@fastify/http-proxy in a cluster', hasAuth: false, start: startHttpProxy(coreCount) },
  { title: 'express-gateway', program: 'eg', hasAuth: false, start: startExpressGateway },
  {
    title: 'frontdesk, auth and limit',
    hasAuth: true,
    start: frontdeskWith('proxy-auth', { THREADS: String(coreCount) }),
  },
  { title: 'nginx, auth and limit', program: 'nginx', hasAuth: true, start: startNginx(true) },
  { title: 'Envoy, auth and limit', program: 'envoy', hasAuth: true, start: startEnvoy(true) },
  // Its limits are a plugin.
  { title: 'Caddy, auth', program: 'caddy', hasAuth: true, start: startCaddy(true) },
  { title: 'Traefik, auth and limit', program: 'traefik', hasAuth: true, start: startTraefik(true) },
  // @fastify/http-proxy has neither. express-gateway's auth computes a bcrypt hash in JavaScript at each request, which
  // leaves it about ten requests a second.
];

/** Responds with 1 KiB. nginx takes less CPU from the gateways than Node. */
export async function startUpstream(port: number, directory: string): Promise<Stoppable> {
  if (!isInstalled('nginx'))
    return await benchServer('upstream')(port, directory, { upstreamPort: port, ratelimitPort: 9, authPort: 9 });
  const location = `location / { return 200 '${'x'.repeat(1024)}'; }`;
  const configuration = `server { listen 127.0.0.1:${port} ${backlog}; ${unlimited} ${location} }`;
  return await start(nginxOnAllCores, configuration, port);
}

/** By default nginx drops connections if a gateway opens 1,000 at once, so that some take a second longer. */
const backlog = 'backlog=4096';
/** By default nginx closes a connection after 1,000 requests. */
const unlimited = 'keepalive_requests 1000000000;';

const nginxOnAllCores: ProxyProgram = {
  // As root, the workers would otherwise run as a user who cannot read the file of users.
  ...nginxWith([
    `user ${userInfo().username};`,
    'worker_processes auto;',
    'worker_rlimit_nofile 16384;',
    'events { worker_connections 4096; }',
  ]),
  stopSignal: 'SIGTERM',
};

function startNginx(hasAuth: boolean): StartGateway {
  return (port, directory, { upstreamPort }) => {
    const users = join(directory, 'users');
    writeFileSync(users, sha1User);
    const authAndLimit = `
      auth_basic demo;
      auth_basic_user_file ${users};
      proxy_set_header ${userHeader} $remote_user;
      limit_req zone=labels burst=${limit} nodelay;`;
    const configuration = `
      limit_req_zone $http_${labelHeader.toLowerCase().replaceAll('-', '_')} zone=labels:10m rate=${limit}r/s;
      upstream service { server 127.0.0.1:${upstreamPort}; keepalive ${idleConnections}; ${unlimited} }
      server {
        listen 127.0.0.1:${port} reuseport ${backlog};
        ${unlimited}
        location /proxied/ {
          ${hasAuth ? authAndLimit : ''}
          proxy_set_header Connection "";
          proxy_http_version 1.1;
          proxy_pass http://service/;
        }
      }`;
    return start(nginxOnAllCores, configuration, port);
  };
}

/** With its own auth and limit, which need no other process. */
function startEnvoy(hasAuth: boolean): StartGateway {
  const bucket = { token_bucket: { max_tokens: limit, tokens_per_fill: limit, fill_interval: '1s' } };
  const always = { default_value: { numerator: 100 } };
  const filters = [
    httpFilter('basic_auth', 'basic_auth.v3.BasicAuth', {
      users: { inline_string: sha1User },
      forward_username_header: userHeader,
    }),
    httpFilter('local_ratelimit', 'local_ratelimit.v3.LocalRateLimit', {
      stat_prefix: 'limit',
      ...bucket,
      filter_enabled: always,
      filter_enforced: always,
      descriptors: [{ entries: [{ key: 'label', value: 'bench' }], ...bucket }],
    }),
  ];
  const rateLimits = [{ actions: [{ request_headers: { header_name: labelHeader, descriptor_key: 'label' } }] }];
  return (port, _directory, { upstreamPort }) => {
    const configuration = envoyConfiguration({
      port,
      prefix: '/proxied/',
      target: upstreamPort,
      filters: hasAuth ? filters : [],
      route: { prefix_rewrite: '/', ...(hasAuth && { rate_limits: rateLimits }) },
    });
    return start(envoyWith([]), configuration, port);
  };
}

function startCaddy(hasAuth: boolean): StartGateway {
  return (port, _directory, { upstreamPort }) => {
    const site = `
      http://:${port} {
        bind 127.0.0.1
        handle_path /proxied/* {
          ${hasAuth ? `basicauth {\n${bcryptUser}\n}` : ''}
          reverse_proxy 127.0.0.1:${upstreamPort} {
            ${hasAuth ? `header_up ${userHeader} {http.auth.user.id}` : ''}
            transport http {
              keepalive_idle_conns_per_host ${idleConnections}
            }
          }
        }
      }`;
    return start(caddy, site, port);
  };
}

function startTraefik(hasAuth: boolean): StartGateway {
  return (port, directory, { upstreamPort }) => {
    const middlewares = {
      strip: { stripPrefix: { prefixes: ['/proxied'] } },
      auth: { basicAuth: { users: [sha1User], headerField: userHeader } },
      limit: {
        rateLimit: { average: limit, burst: limit, sourceCriterion: { requestHeaderName: labelHeader } },
      },
    };
    const router = {
      rule: 'PathPrefix(`/proxied/`)',
      service: 'upstream',
      middlewares: hasAuth ? ['auth', 'limit', 'strip'] : ['strip'],
    };
    const service = { loadBalancer: { servers: [{ url: `http://127.0.0.1:${upstreamPort}` }] } };
    const dynamicFile = join(directory, 'dynamic.yaml');
    // JSON is YAML.
    writeFileSync(
      dynamicFile,
      JSON.stringify({ http: { routers: { proxied: router }, middlewares, services: { upstream: service } } }),
    );
    const traefik: ProxyProgram = {
      command: 'traefik',
      configure: () => '',
      args: () => [
        `--entryPoints.web.address=127.0.0.1:${port}`,
        `--providers.file.filename=${dynamicFile}`,
        `--serversTransport.maxIdleConnsPerHost=${idleConnections}`,
        '--global.checkNewVersion=false',
        '--log.level=ERROR',
      ],
    };
    return start(traefik, '', port);
  };
}

function startHttpProxy(processes: number): StartGateway {
  return (port, _directory, { upstreamPort }) =>
    startChild([join(root, 'test/bench/servers/http-proxy.ts')], {
      PORT: String(port),
      UPSTREAM: `http://127.0.0.1:${upstreamPort}`,
      PROCESSES: String(processes),
    });
}

/** Its package is found by its command `eg`. It reads JSON, and keeps its own data in memory. */
function startExpressGateway(port: number, directory: string, { upstreamPort }: Ports): Child {
  const packageDirectory = dirname(dirname(realpathSync(findProgram('eg') ?? '')));
  cpSync(join(packageDirectory, 'lib/config/models'), join(directory, 'models'), { recursive: true });
  const proxy = { action: { serviceEndpoint: 'upstream', stripPath: true } };
  const gateway = {
    http: { port, hostname: '127.0.0.1' },
    apiEndpoints: { proxied: { host: '*', paths: '/proxied/*' } },
    serviceEndpoints: { upstream: { url: `http://127.0.0.1:${upstreamPort}` } },
    policies: ['proxy'],
    pipelines: { main: { apiEndpoints: ['proxied'], policies: [{ proxy }] } },
  };
  const system = {
    db: { redis: { emulate: true } },
    crypto: { cipherKey: 'key', algorithm: 'aes256', saltRounds: 10 },
  };
  writeFileSync(join(directory, 'gateway.config.yml'), JSON.stringify(gateway));
  writeFileSync(join(directory, 'system.config.yml'), JSON.stringify(system));
  return startChild([join(packageDirectory, 'lib/index.js')], {
    EG_CONFIG_DIR: directory,
    LOG_LEVEL: 'error',
    NODE_NO_WARNINGS: '1',
  });
}

async function start(program: ProxyProgram, configuration: string, port: number): Promise<Stoppable> {
  const { remove } = await startProxy(program, configuration, port);
  return { stop: remove };
}
