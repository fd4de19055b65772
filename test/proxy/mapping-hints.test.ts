/** The warnings about a mapping that lacks a field, for what its clients or its service do. */
import assert from 'node:assert/strict';
import type { Mapping } from '#config';
import type { Logger } from '#foundation';
import { createAccessLog, createUpgrades } from '#http';
import { startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { startHttp } from '../support/wire/http-server.ts';
import { speak, upgradeRequest } from '../support/wire/peer.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

describe('a request to switch protocols that its mapping does not allow', () => {
  const servers = testServers();

  async function setUp(mapping: Partial<Mapping> = {}) {
    const lines: Readonly<Record<string, unknown>>[] = [];
    const write = (fields: object) => void lines.push({ ...fields });
    const access: Logger = { info: write, warn: write, error: write };
    const edge = await startEdge(servers, {
      upstream: await startUpstream(servers),
      mapping,
      inside: [createAccessLog(access)],
    });
    const upgrades = createUpgrades(() => true);
    const { port } = await startHttp(servers, { handler: edge.listener, upgrades });
    servers.later(() => upgrades.close(0));
    const open = (protocol?: string, headers?: readonly string[]) =>
      speak(port, upgradeRequest('/v1/hotels', headers, protocol)).until('\r\nok');
    const warnings = () => edge.log.filter(({ level }) => level === 'warn');
    return { edge, port, open, warnings, refused: () => lines.map((line) => line['refusedUpgrade']) };
  }

  it('is forwarded without it, with a warning once per mapping, and a field in each line of the access log', async () => {
    const { open, warnings, refused } = await setUp();
    for (let time = 0; time < 3; time += 1) await open('WebSocket, chat');
    assert.deepEqual(refused(), ['websocket', 'websocket', 'websocket']);
    const [{ fields, message } = assert.fail('no warning'), ...more] = warnings();
    assert.equal(more.length, 0);
    assert.equal(fields['mapping'], 'hotel');
    assert.match(message ?? '', /set allow_upgrade: \[websocket\]/);
  });

  it('has no warning if it is for another version of HTTP or no protocol, or if Connection does not list it', async () => {
    const { open, port, warnings, refused } = await setUp();
    for (const protocol of ['h2c', 'HTTP/2.0', 'TLS/1.2', '<b>', 'x'.repeat(100)]) await open(protocol);
    await sendRaw(port, rawRequest('GET /v1/hotels', ['Upgrade: websocket']));
    assert.deepEqual([warnings(), new Set(refused())], [[], new Set([undefined])]);
  });

  it('has no warning if the mapping allows it', async () => {
    const { edge, warnings } = await setUp({ allowUpgrade: ['websocket'] });
    await sendRaw(edge.port, rawRequest('GET /v1/hotels', ['Upgrade: websocket', 'Connection: upgrade']));
    assert.deepEqual(warnings(), []);
  });
});

describe('a service that redirects a client to the URL that it has asked for', () => {
  const servers = testServers();

  /** Sends three requests to a service that redirects to `location`, and returns the warnings. */
  async function warningsFor(
    location: string,
    mapping: Partial<Mapping> = {},
    line = 'GET /v1/hotels/?a=1',
    status = 302,
  ) {
    const upstream = await startUpstream(servers, (res) => res.writeHead(status, { Location: location }).end());
    const edge = await startEdge(servers, { upstream, mapping });
    for (let time = 0; time < 3; time += 1) await sendRaw(edge.port, rawRequest(line));
    assert.equal(upstream.reached.length, 3);
    return edge.log.filter(({ level }) => level === 'warn').map(({ message }) => message ?? '');
  }

  for (const [what, location, mapping] of [
    ['a path', '/v1/hotels/?a=1', {}],
    ['an absolute URL', 'http://front.example/v1/hotels/?a=1', {}],
    [
      'a path with a regular expression',
      '/v1/hotels/?a=1',
      { prefix: '/v1/.*', prefixMatch: 'regex', regexRewrite: { pattern: '^/v1(.*)', substitution: '\\1' } },
    ],
  ] as const)
    it(`has a warning once per mapping that names the field, if it is ${what}`, async () => {
      const [message, ...more] = await warningsFor(location, mapping);
      assert.match(message ?? '', /set rewrite: ""$/);
      assert.deepEqual(more, []);
    });

  for (const [what, location, { mapping = {}, line = undefined, status = 302 }] of [
    ['another path', '/v1/hotels/login', {}],
    ['another query', '/v1/hotels/?a=2', {}],
    ['another host', 'http://other.example/v1/hotels/?a=1', {}],
    ['the same URL after a POST', '/v1/hotels/', { line: 'POST /v1/hotels/' }],
    ['the same URL if the path is not rewritten', '/v1/hotels/?a=1', { mapping: { rewrite: '' } }],
    ['no redirect', '/v1/hotels/?a=1', { status: 201 }],
  ] satisfies readonly [string, string, { mapping?: Partial<Mapping>; line?: string; status?: number }][])
    it(`has no warning if it is ${what}`, async () => {
      assert.deepEqual(await warningsFor(location, mapping, line, status), []);
    });
});
