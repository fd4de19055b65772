/** PROXY_PROTOCOL: which listeners read it, and what the client that it names means to everything else. */
import assert from 'node:assert/strict';
import type { FrontdeskOptions } from '../../src/index.ts';
import { annRecord, authRecord, desksOf, mappingRecord } from '../support/desks.ts';
import { type LogLine, recordingLogger } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { eventually } from '../support/waiting.ts';
import { rawRequest, sendRaw, statusOf } from '../support/wire/raw-client.ts';

const servers = testServers();
const open = desksOf(servers);

const from = (client: string, path = '/a', headers: readonly string[] = []) =>
  `PROXY TCP4 ${client} 10.0.0.1 4711 80\r\n${rawRequest(`GET ${path}`, headers)}`;

async function setUp(options: FrontdeskOptions = {}) {
  const upstream = await startUpstream(servers);
  const log: LogLine[] = [];
  const records = [
    authRecord,
    mappingRecord('all', '/', upstream.origin, { bypass_auth: true }),
    mappingRecord('inside', '/inside', upstream.origin, { bypass_auth: true, allow_addresses: ['10.0.0.0/8'] }),
  ];
  const desk = await open({
    demo: false,
    only: ['gateway', 'auth'],
    proxyProtocol: true,
    trustedProxies: ['127.0.0.1'],
    adminPort: 0,
    config: { records, users: [annRecord] },
    logger: recordingLogger(log),
    ...options,
  });
  return { listeners: await desk.listen(), upstream, log };
}

describe('a gateway with PROXY_PROTOCOL', () => {
  it('decides by the client that the proxy names, logs it and forwards it', async () => {
    const { listeners, upstream, log } = await setUp();
    const { port } = listeners.gateway;
    assert.equal(statusOf(await sendRaw(port, from('10.0.0.7', '/inside'))), 200);
    assert.equal(upstream.only().headers['x-forwarded-for'], '10.0.0.7');
    assert.equal(statusOf(await sendRaw(port, from('203.0.113.7', '/inside'))), 403);
    await eventually(() =>
      assert.deepEqual(
        log.filter(({ message }) => message === 'request').map(({ fields }) => fields['client']),
        ['10.0.0.7', '203.0.113.7'],
      ),
    );
  });

  it('does not believe the X-Forwarded-For of that client, unless it is a trusted proxy too', async () => {
    const { listeners } = await setUp({ trustedProxies: ['127.0.0.1', '192.0.2.1'] });
    const { port } = listeners.gateway;
    const claims = ['X-Forwarded-For: 10.0.0.7'];
    assert.equal(statusOf(await sendRaw(port, from('203.0.113.7', '/inside', claims))), 403);
    assert.equal(statusOf(await sendRaw(port, from('192.0.2.1', '/inside', claims))), 200);
  });

  it('reads it on the port of the gateway only: gateways call the auth port, and orchestrators the admin port', async () => {
    const { listeners } = await setUp();
    assert.equal(await sendRaw(listeners.gateway.port, rawRequest('GET /a')), '');
    assert.equal(statusOf(await sendRaw(listeners.admin.port, rawRequest('GET /livez'))), 200);
    assert.equal(statusOf(await sendRaw(listeners.auth.port, rawRequest('GET /any'))), 401);
  });

  it('does not start without TRUSTED_PROXIES, because it would close every connection', async () => {
    await assert.rejects(setUp({ trustedProxies: [] }), /proxyProtocol is set and trustedProxies is not/);
  });
});

describe('a process without the gateway', () => {
  it('neither reads the PROXY protocol nor refuses addresses, because gateways call it', async () => {
    const desk = await open({
      only: ['hotel'],
      proxyProtocol: true,
      allowAddresses: ['10.0.0.0/8'],
      trustedProxies: ['127.0.0.1'],
    });
    const { gateway } = await desk.listen();
    assert.equal(statusOf(await sendRaw(gateway.port, rawRequest('GET /gateway/v0/check_alive'))), 200);
  });
});
