/** The `limits show` and `limits reset` commands: reach the counters in Redis directly, or those of a running gateway. */

import { hostForClients, loadDirectory, readRedisFiles, type Settings } from '#config';
import { isMap, messageOf } from '#foundation';
import { adviseOnRedis, type ClientLimit, type ClientLimits, createClientLimits, openRedisCounters } from '#ratelimit';
import { hostsOfRedisUrl } from '#ratelimit/redis-url';

export interface LimitsOptions {
  readonly domain: string;
  /** `key=value`, from general to specific. */
  readonly entries: readonly string[];
  /** The address of a running gateway. */
  readonly url?: string | undefined;
  /** The name of an administrator. */
  readonly user?: string | undefined;
}

type ActionName = keyof ClientLimits;
type Client = Parameters<ClientLimits['show']>[0];

/** Resolves to the text to print. Rejects with a user-facing Error. */
export async function runLimits(settings: Settings, action: ActionName, options: LimitsOptions): Promise<string> {
  const client = { domain: options.domain, entries: options.entries.map(parseEntry) };
  const { redisUrl } = settings;
  return redisUrl !== undefined && options.url === undefined
    ? inRedis(redisUrl, settings, action, client)
    : throughGateway(options.url ?? ownUrl(settings), options.user, action, client);
}

function parseEntry(text: string) {
  const at = text.indexOf('=');
  if (at < 1) throw new Error(`write each entry as key=value, not ${JSON.stringify(text)}`);
  return { key: text.slice(0, at), value: text.slice(at + 1) };
}

const redisTimeoutMs = 2_000;

async function inRedis(url: string, settings: Settings, action: ActionName, client: Client): Promise<string> {
  const { configuration } = await loadDirectory(settings.configDir, settings);
  const host = hostsOfRedisUrl(url);
  let lastError: unknown;
  const outage = {
    failed(error: unknown) {
      lastError = error;
    },
    succeeded() {},
  };
  const counters = await openRedisCounters({
    url,
    tls: () => readRedisFiles(settings),
    timeoutMs: redisTimeoutMs,
    outage,
  });
  try {
    const clientLimits = createClientLimits({ limits: () => configuration.limits, counters });
    const limits = await clientLimits[action](client);
    const note = action === 'reset' ? ' A running frontdesk notices within two seconds.' : '';
    return textOf(limits, `${did[action]} in Redis at ${host}.${note}`);
  } catch (error) {
    throw failureOf(error, lastError, host);
  } finally {
    await counters.close();
  }
}

function failureOf(error: unknown, connectionError: unknown, host: string): unknown {
  if (error instanceof Error && error.name === 'InvalidRequest') return error;
  const cause = connectionError ?? error;
  const advice = adviseOnRedis(cause);
  return new Error(
    `the counters in Redis at ${host} cannot be reached: ${messageOf(cause)}${advice ? `; ${advice}` : ''}`,
  );
}

const did = { show: 'Read the counters', reset: 'Reset the counters' } as const;

function ownUrl({ host, port, tlsCert }: Settings): string {
  return `${tlsCert === undefined ? 'http' : 'https'}://${hostForClients(host)}:${port}`;
}

async function throughGateway(url: string, user: string | undefined, action: ActionName, client: Client) {
  if (!URL.canParse(url)) throw new Error('--url is not a URL: write --url http://127.0.0.1:8080');
  if (user === undefined) throw new Error(needsUser);
  const { readPassword } = await import('./users.ts');
  const password = await readPassword({ input: process.stdin, output: process.stderr, isNew: false });
  process.stdin.destroy();
  const response = await post(url, `gateway/v0/limits/${action}`, `${user}:${password}`, client);
  const body: unknown = await response.json().catch(() => undefined);
  if (response.status === 200 && isResult(body))
    return textOf(body.limits, `${did[action]} of the gateway at ${url}, which other processes do not share.`);
  throw new Error(rejectionOf(url, response.status, body));
}

const needsUser =
  'the counters are in the memory of a running gateway: name an administrator with --user NAME, or set REDIS_URL if they are in Redis';

const requestTimeoutMs = 10_000;

async function post(url: string, path: string, credentials: string, client: Client): Promise<Response> {
  const base = url.endsWith('/') ? url : `${url}/`;
  try {
    return await fetch(new URL(path, base), {
      method: 'POST',
      headers: {
        Authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
        'Content-Type': 'application/json',
      },
      body: JSON.stringify(client),
      redirect: 'error',
      signal: AbortSignal.timeout(requestTimeoutMs),
    });
  } catch (error) {
    const cause = error instanceof Error ? (error.cause ?? error) : error;
    throw new Error(
      `there is no gateway at ${url}: ${messageOf(cause)}. Start frontdesk serve, or name its address with --url`,
    );
  }
}

function isResult(body: unknown): body is { readonly limits: readonly ClientLimit[] } {
  return isMap(body) && Array.isArray(body['limits']);
}

function rejectionOf(url: string, status: number, body: unknown): string {
  const detail = isMap(body) && 'detail' in body ? String(body['detail']) : undefined;
  if (status === 401) return `the gateway at ${url} does not accept the user and password`;
  if (status === 403) return `the user is not an administrator of the gateway at ${url}`;
  if (status === 404 && detail !== undefined) return detail;
  if (status === 404)
    return `the gateway at ${url} has no limits to show: it needs a default AuthService, and a frontdesk of this version`;
  return `the gateway at ${url} responded with ${status}${detail === undefined ? '' : `: ${detail}`}`;
}

function textOf(limits: readonly ClientLimit[], reached: string): string {
  return `${reached}\n${limits.map((limit) => `  ${lineOf(limit)}\n`).join('')}`;
}

/** Formats a line such as `10 per minute on user: 3 left, all again in 42 s (limits.yaml:4)`. */
function lineOf({ limit, descriptor, source, left, reset_seconds: seconds }: ClientLimit): string {
  const where = source === undefined ? '' : ` (${source})`;
  const wait = left === 0 ? `the next in ${seconds} s` : `all again in ${seconds} s`;
  const state = left === undefined ? '' : `: ${left} left, ${wait}`;
  return `${limit} on ${descriptor}${state}${where}`;
}
