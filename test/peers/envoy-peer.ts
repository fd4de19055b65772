/** Runs the recipe for Envoy: a real Envoy with the recipe's file, and the frontdesk server, which can be restarted. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import request from 'supertest';
import { parse, stringify } from 'yaml';
import { readRecipe, serveCommands } from '../recipes/page.ts';
import { freePort } from '../support/programs/free-port.ts';
import { type Server, startServer } from '../support/programs/frontdesk-process.ts';
import { envoy, type ProxyProcess, startProxy } from '../support/programs/proxy-process.ts';
import { onPorts } from '../support/programs/shell-story.ts';
import type { TestServers } from '../support/serve.ts';
import type { WriteFiles } from '../support/temporary-files.ts';
import { eventually } from '../support/waiting.ts';
import type { RecipePorts } from './auth-caller.ts';

export interface EnvoyPorts extends RecipePorts {
  readonly limits: number;
  /** The admin port of the process that runs both services. */
  readonly admin: number;
}

const { files, blocks } = readRecipe('Use authentication and limits from Envoy');

/** @param changes replacements for texts of the file; throws if one of the texts is missing */
export function readEnvoyRecipe(
  { proxy, auth, limits, admin, upstream }: EnvoyPorts,
  changes: Readonly<Record<string, string>> = {},
): string {
  const ports = { 10000: proxy, 8082: auth, 8081: limits, 8083: admin, 3000: upstream };
  let text = onPorts(files['envoy.yaml'] ?? '', ports, 'port_value: ');
  for (const [part, other] of Object.entries(changes)) {
    assert.ok(text.includes(part), `the recipe for Envoy does not have ${part}`);
    text = text.replaceAll(part, other);
  }
  return text;
}

export interface EnvoyPeerOptions {
  readonly writeFiles: WriteFiles;
  readonly upstream: number;
  readonly changes?: Readonly<Record<string, string>>;
  readonly env?: Readonly<Record<string, string>>;
  /** Starts two servers, each of which is an endpoint of both clusters. @default false */
  readonly hasReplica?: boolean;
}

export interface EnvoyPeer {
  readonly proxy: ProxyProcess;
  readonly ports: EnvoyPorts;
  /** The current server, or the previous one after a stop. */
  readonly server: () => Server;
  /** Starts a new server on the same ports. */
  readonly startAgain: () => Promise<void>;
  /** Resolves when Envoy's active health checks report this state for both clusters. */
  readonly isHealthy: (expected: boolean) => Promise<void>;
}

/** Gives both services more time, because the machine may be busy and these tests do not measure speed. */
const patient = { 'timeout: 0.1s': 'timeout: 20s', 'timeout: 1s': 'timeout: 20s' };
const patience = 4;

/** Starts Envoy and a server with the demo's users, and stops them with `servers`. */
export async function startEnvoyPeer(servers: TestServers, options: EnvoyPeerOptions): Promise<EnvoyPeer> {
  const { writeFiles, upstream, changes, env, hasReplica = false } = options;
  const users = readFileSync(new URL('../../config/users.yaml', import.meta.url), 'utf8');
  const limits = 'config/ratelimit/edge.yaml';
  const cwd = await writeFiles({ [limits]: files[limits] ?? '', 'config/users.yaml': users });
  const [proxyPort = 0, auth = 0, limitPort = 0, admin = 0, statusPort = 0] = await freePorts(5);
  const ports = { proxy: proxyPort, auth, limits: limitPort, admin, upstream };
  const [command] = serveCommands(blocks('sh')[0] ?? '');
  assert.ok(command);
  const own = { AUTH_PORT: String(auth), RATELIMIT_PORT: String(limitPort), ADMIN_PORT: String(admin), ...env };
  const drain = hasReplica ? { DRAIN_MS: String(patience * Number(command.env['DRAIN_MS'])) } : {};
  const start = (variables = own) =>
    startServer(command.args, { cwd, env: { ...command.env, ...variables, ...drain } });
  let server = await start();
  servers.later(() => server.stop());
  const replica = hasReplica
    ? await start({ ...own, AUTH_PORT: '0', RATELIMIT_PORT: '0', ADMIN_PORT: '0' })
    : undefined;
  if (replica !== undefined) servers.later(replica.stop);
  const status = `admin: { address: { socket_address: { address: 127.0.0.1, port_value: ${statusPort} } } }`;
  const recipe = readEnvoyRecipe(ports, { ...patient, ...changes });
  const text = `${replica === undefined ? recipe : withReplica(recipe, ports, replica)}\n${status}\n`;
  const proxy = await startProxy(envoy, text, proxyPort);
  servers.later(proxy.remove);
  return {
    proxy,
    ports,
    server: () => server,
    async startAgain() {
      server = await start();
    },
    isHealthy: (expected) =>
      eventually(async () => {
        const { body } = await request(`http://127.0.0.1:${statusPort}`).get('/clusters?format=json').expect(200);
        for (const name of ['auth', 'limits']) assert.equal(isPassing(body, name), expected, name);
      }),
  };
}

/** Adds the endpoints of a second server to the clusters of the first. */
function withReplica(recipe: string, { auth, limits, admin }: EnvoyPorts, replica: Server): string {
  const file = parse(recipe);
  const portOf = (url: string) => Number(new URL(url).port);
  const ports = new Map([
    [auth, portOf(replica.authUrl)],
    [limits, portOf(replica.ratelimitUrl.replace('grpc', 'http'))],
    [admin, portOf(replica.adminUrl)],
  ]);
  const moved = (key: string, value: unknown) => (key === 'port_value' ? ports.get(Number(value)) : value);
  for (const cluster of file.static_resources.clusters) {
    const [{ lb_endpoints: endpoints }] = cluster.load_assignment.endpoints;
    if (cluster.name !== 'service') endpoints.push(JSON.parse(JSON.stringify(endpoints[0]), moved));
  }
  return stringify(file);
}

interface ClusterReport {
  readonly cluster_statuses: readonly {
    readonly name: string;
    readonly host_statuses?: readonly { readonly health_status: { readonly failed_active_health_check?: boolean } }[];
  }[];
}

/** True if all hosts pass. */
function isPassing({ cluster_statuses: clusters }: ClusterReport, name: string): boolean {
  const hosts = clusters.find((one) => one.name === name)?.host_statuses ?? [];
  if (hosts.length === 0) throw new Error(`Envoy has no host for ${name}`);
  return hosts.every(({ health_status: health }) => health.failed_active_health_check !== true);
}

async function freePorts(count: number): Promise<readonly number[]> {
  const ports = new Set<number>();
  while (ports.size < count) ports.add(await freePort());
  return [...ports];
}
