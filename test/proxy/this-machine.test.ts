/** A service of a record that is not trusted must not be this machine, whatever DNS says when it is called. */
import assert from 'node:assert/strict';
import type { LookupAddress, LookupOptions } from 'node:dns';
import dns from 'node:dns';
import os, { type NetworkInterfaceInfo } from 'node:os';
import { mock } from 'node:test';
import { silentLogger } from '#foundation';
import { createUpgrades } from '#http';
import { type ClusterSpec, createClusters } from '#proxy';
import { ask, createManualTime, healthCheckOf, specOf } from '../support/clusters.ts';
import { mappingOf, startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { eventually } from '../support/waiting.ts';
import { startHttp } from '../support/wire/http-server.ts';
import { rawRequest, sendRaw, statusOf } from '../support/wire/raw-client.ts';

const servers = testServers();

/** The addresses that names have in DNS during a test. */
const names = new Map<string, readonly string[]>();

beforeEach(() => {
  const { lookup } = dns;
  mock.method(dns, 'lookup', (name: string, options: LookupOptions, done: (...found: unknown[]) => void) => {
    const addresses = names.get(name);
    if (addresses === undefined) return lookup(name, options, done as never);
    const found: LookupAddress[] = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    queueMicrotask(() => (options.all ? done(null, found) : done(null, found[0]?.address, found[0]?.family)));
  });
});

/** The machine has these addresses during a test, beside those of loopback. */
function useInterfaces(...addresses: readonly string[]): void {
  const found = addresses.map((address) => ({ address }) as NetworkInterfaceInfo);
  mock.method(os, 'networkInterfaces', () => ({ eth0: found }));
}

afterEach(() => {
  mock.restoreAll();
  names.clear();
});

/** A listener of this machine that counts its connections, and a service at `host` with its port that is not trusted. */
async function startAt(scheme: 'http' | 'https', host: string, fields: Partial<ClusterSpec> = {}) {
  let connections = 0;
  const { port } = await servers.tcp((socket) => {
    connections += 1;
    socket.destroy();
  });
  const clusters = createClusters({ random: () => 0 });
  servers.later(clusters.close);
  const origin = `${scheme}://${host}:${port}`;
  const { cluster } = clusters.acquire(specOf([origin], { isUntrusted: true, ...fields }));
  return { cluster, connections: () => connections };
}

describe('a service that is not trusted', () => {
  for (const scheme of ['http', 'https'] as const)
    for (const http2 of [false, true]) {
      const protocol = `${scheme} ${http2 ? 'and HTTP/2' : 'and HTTP/1.1'}`;

      it(`is not called over ${protocol} when its name leads to this machine`, async () => {
        names.set('metrics.example', ['127.0.0.1']);
        names.set('mixed.example', ['10.0.0.1', '127.0.0.1']);
        for (const [name, address] of [
          ['metrics.example', '127.0.0.1'],
          ['mixed.example', '127.0.0.1'],
          ['localhost', '(?:127.0.0.1|::1)'],
        ] as const) {
          const { cluster, connections } = await startAt(scheme, name, { http2 });
          const why = new RegExp(`${name} resolves to ${address}, which is the machine of frontdesk`);
          for (let time = 0; time < 2; time += 1) await assert.rejects(ask(cluster), why);
          assert.equal(connections(), 0);
        }
      });

      it(`is not called over ${protocol} at an address of this machine`, async () => {
        for (const host of ['127.0.0.1', '127.1', '0.0.0.0', '[::ffff:127.0.0.1]', '[::1]']) {
          const { cluster, connections } = await startAt(scheme, host, { http2 });
          for (let time = 0; time < 2; time += 1)
            await assert.rejects(ask(cluster), /^OwnMachine: .+ is the machine of frontdesk/);
          assert.equal(connections(), 0);
        }
      });

      it(`is not called over ${protocol} at an address of an interface of this machine`, async () => {
        useInterfaces('10.0.0.7', 'fd00::7');
        names.set('pod.example', ['10.0.0.6', '10.0.0.7']);
        for (const host of ['10.0.0.7', '[fd00::7]', '[fd00:0::0:7]', '[::ffff:10.0.0.7]', 'pod.example']) {
          const { cluster } = await startAt(scheme, host, { http2 });
          for (let time = 0; time < 2; time += 1)
            await assert.rejects(ask(cluster), /^OwnMachine: .+ is the machine of frontdesk/);
        }
      });

      it(`fails its health checks over ${protocol}, which do not reach this machine either`, async () => {
        names.set('metrics.example', ['127.0.0.1']);
        let connections = 0;
        const { port } = await servers.tcp(() => {
          connections += 1;
        });
        const time = createManualTime();
        const logged: string[] = [];
        const log = ({ err }: { readonly err?: unknown }, message?: string) => void logged.push(`${message}: ${err}`);
        const clusters = createClusters({ ...time, logger: { info: log, warn: log, error: log } });
        servers.later(clusters.close);
        const healthCheck = healthCheckOf({ timeoutMs: 30_000 });
        const origins = [`${scheme}://metrics.example:${port}`];
        const { cluster } = clusters.acquire(specOf(origins, { isUntrusted: true, http2, healthCheck }));
        await eventually(() => {
          time.advance(1000);
          assert.equal(cluster.snapshot().addresses[0]?.health, 'unhealthy');
        });
        assert.equal(connections, 0);
        assert.match(
          logged[0] ?? '',
          /address fails its health check: .* resolves to 127\.0\.0\.1, .*trusted namespaces/,
        );
      });
    }

  it('shares no connection with the same service of a trusted record, which may be this machine', async () => {
    names.set('shop.example', ['127.0.0.1']);
    const { port, reached } = await startUpstream(servers);
    const clusters = createClusters();
    servers.later(clusters.close);
    const origins = [`http://shop.example:${port}`];
    const trusted = clusters.acquire(specOf(origins, { isUntrusted: false })).cluster;
    const untrusted = clusters.acquire(specOf(origins, { isUntrusted: true })).cluster;
    assert.equal((await ask(trusted)).status, 200);
    await assert.rejects(ask(untrusted), /is the machine of frontdesk/);
    assert.equal(reached.length, 1);
  });
});

describe('a mapping that is not trusted', () => {
  it('answers 503 when its service leads to this machine, and one line of the log says what to do', async () => {
    names.set('metrics.example', ['127.0.0.1']);
    const { port, reached } = await startUpstream(servers);
    const metrics = { kind: 'remote', origins: () => [`http://metrics.example:${port}`], path: '' } as const;
    const { log, listener } = await startEdge(servers, {
      mapping: { isUntrusted: true, allowUpgrade: ['websocket'] },
      targets: { hotel: metrics },
    });
    const upgrades = createUpgrades((protocol) => protocol === 'websocket');
    const { port: front } = await startHttp(servers, { handler: listener, upgrades });
    servers.later(() => upgrades.close(0));
    const upgrade = ['Connection: Upgrade', 'Upgrade: websocket'];
    for (const headers of [[], [], upgrade])
      assert.equal(statusOf(await sendRaw(front, rawRequest('GET /v1/hotels', headers))), 503);
    assert.deepEqual(reached, []);
    assert.equal(log.length, 1);
    const [{ fields, message }] = log as [(typeof log)[0]];
    assert.match(
      `${message} ${fields['mapping']} ${fields['err']}`,
      /hotel .*metrics\.example resolves to 127\.0\.0\.1, which is the machine of frontdesk.*trusted namespace/,
    );
  });

  it('may be called at an address of this machine that the settings give its name', async () => {
    const { origin, reached } = await startUpstream(servers);
    const configured = { kind: 'remote', origins: () => [origin], path: '', isConfigured: true } as const;
    const { port } = await startEdge(servers, { mapping: { isUntrusted: true }, targets: { hotel: configured } });
    assert.equal(statusOf(await sendRaw(port, rawRequest('GET /v1/hotels'))), 200);
    assert.equal(reached.length, 1);
  });

  it('sends no copies to this machine as a shadow', async () => {
    names.set('copies.example', ['127.0.0.1']);
    const shop = await startUpstream(servers);
    const { port, reached } = await startUpstream(servers);
    const causes: string[] = [];
    const debug = ({ err }: { readonly err?: unknown }) => void causes.push(String(err));
    const { port: front } = await startEdge(servers, {
      logger: { ...silentLogger, debug },
      mappings: [mappingOf(), mappingOf({ name: 'copies', service: 'copies', shadow: true, isUntrusted: true })],
      targets: {
        hotel: { kind: 'remote', origins: () => [shop.origin], path: '' },
        copies: { kind: 'remote', origins: () => [`http://copies.example:${port}`], path: '' },
      },
    });
    assert.equal(statusOf(await sendRaw(front, rawRequest('GET /v1/hotels'))), 200);
    await eventually(() => assert.match(causes.join(), /copies\.example resolves to 127\.0\.0\.1/));
    assert.deepEqual(reached, []);
  });
});
