/** Counters in a Redis that requires TLS, with and without a client certificate. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { openRedisCounters, type RedisCounters } from '../../../src/ratelimit/counters/redis.ts';
import type { RedisTls } from '../../../src/ratelimit/counters/redis-client.ts';
import { adviseOnRedis } from '../../../src/ratelimit/counters/redis-connection.ts';
import { hitOfThree } from '../../support/limits.ts';
import { describeWith } from '../../support/programs/installed.ts';
import { createRedisServer, createSentinel, type RedisServer } from '../../support/programs/redis-server.ts';
import { testServers } from '../../support/serve.ts';
import { temporaryFiles } from '../../support/temporary-files.ts';
import { eventually } from '../../support/waiting.ts';
import { type Certificate, makeCertificate } from '../../support/wire/certificate.ts';

describeWith('redis-server', 'Redis counters over TLS', () => {
  const servers = testServers();
  const writeFiles = temporaryFiles();
  let ca: Certificate;
  let client: Certificate;

  before(async function () {
    const found = await makeCertificate(await writeFiles(), '', { subject: '/CN=ca' });
    if (found === undefined) return this.skip();
    ca = found;
    client = await signed('DNS:frontdesk');
  });

  async function signed(names: string): Promise<Certificate> {
    const made = await makeCertificate(await writeFiles(), names, { issuer: ca });
    assert.ok(made !== undefined);
    return made;
  }

  /** The options of a server that accepts TLS only. */
  function tlsOptions(port: number, { file, keyFile }: Certificate, clients: 'yes' | 'no'): readonly string[] {
    return [
      `--port 0 --tls-port ${port} --tls-cert-file ${file} --tls-key-file ${keyFile}`,
      `--tls-ca-cert-file ${ca.file} --tls-auth-clients ${clients}`,
    ]
      .join(' ')
      .split(' ');
  }

  async function startRedis(names = 'IP:127.0.0.1', clients: 'yes' | 'no' = 'no'): Promise<RedisServer> {
    const certificate = await signed(names);
    const server = await createRedisServer((port) => tlsOptions(port, certificate, clients));
    servers.later(server.remove);
    await server.start();
    return server;
  }

  const secure = (url: string) => url.replace('redis', 'rediss');

  async function open(url: string, tls: () => RedisTls) {
    const errors: Error[] = [];
    const outage = { succeeded() {}, failed: (error: unknown) => void errors.push(error as Error) };
    const counters = await openRedisCounters({ url, tls, outage, timeoutMs: 5_000, keyPrefix: `${randomUUID()}:` });
    servers.later(counters.close);
    return { counters, errors };
  }

  const count = async (counters: RedisCounters) => (await counters.take([hitOfThree()]))[0]?.remaining;

  const pair = ({ cert, key }: Certificate): RedisTls => ({ ca: ca.cert, cert, key });

  it('count in a server whose certificate is from the authority that REDIS_TLS_CA names', async () => {
    const { url } = await startRedis();
    const { counters } = await open(secure(url), () => ({ ca: ca.cert }));
    await eventually(() => assert.ok(counters.isReady()));
    assert.equal(await count(counters), 2);
  });

  it('count in a server that requires a client certificate', async () => {
    const { url } = await startRedis('IP:127.0.0.1', 'yes');
    const { counters } = await open(secure(url), () => pair(client));
    await eventually(() => assert.ok(counters.isReady()));
    assert.equal(await count(counters), 2);
  });

  it('use renewed files for the next connection, without a restart', async () => {
    const { url } = await startRedis('IP:127.0.0.1', 'yes');
    let current: RedisTls = { ca: client.cert, cert: client.cert, key: client.key };
    const { counters, errors } = await open(secure(url), () => current);
    await eventually(() => assert.ok(errors.length > 0));
    assert.equal(counters.isReady(), false);
    current = pair(client);
    await eventually(() => assert.ok(counters.isReady()));
    assert.equal(await count(counters), 2);
  });

  it('find the primary and count in it over TLS through Sentinels', async () => {
    const server = await startRedis('IP:127.0.0.1', 'yes');
    const certificate = await signed('IP:127.0.0.1');
    const sentinel = await createSentinel(server.port, (port) => [
      ...tlsOptions(port, certificate, 'yes'),
      '--tls-replication',
      'yes',
    ]);
    servers.later(sentinel.remove);
    await sentinel.start();
    const { counters } = await open(`rediss+sentinel://127.0.0.1:${sentinel.port}/main`, () => pair(client));
    await eventually(() => assert.ok(counters.isReady()));
    assert.equal(await count(counters), 2);
  });

  for (const [what, names, clients, tlsOf, pattern, remedy] of [
    ['a server of an unknown authority', 'IP:127.0.0.1', 'no', () => ({}), /certificate/, /REDIS_TLS_CA/],
    [
      'a server with the certificate of another',
      'DNS:other',
      'no',
      () => ({ ca: ca.cert }),
      /127\.0\.0\.1/,
      /as its certificate does/,
    ],
    [
      'to connect without the client certificate',
      'IP:127.0.0.1',
      'yes',
      () => ({ ca: ca.cert }),
      /certificate required/,
      /REDIS_TLS_CERT and REDIS_TLS_KEY/,
    ],
  ] as const)
    it(`refuse ${what}, and say what to do`, async () => {
      const { url } = await startRedis(names, clients);
      const { counters, errors } = await open(secure(url), tlsOf);
      await eventually(() => assert.ok(errors.length > 0));
      await assert.rejects(count(counters), /no connection/);
      assert.match(errors[0]?.message ?? '', pattern);
      assert.match(adviseOnRedis(errors[0]) ?? '', remedy);
    });
});
