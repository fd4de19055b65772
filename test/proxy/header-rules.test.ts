/** add_… and remove_… headers, on the way to a service and back. */
import assert from 'node:assert/strict';
import type { HeaderRules, HeaderValue } from '#config';
import { mappingOf, remote, startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

const added = (name: string, value: string, append = true): HeaderValue => ({ name, value, append });

describe('header rules', () => {
  const servers = testServers();

  async function send(requestHeaders: HeaderRules, headers: readonly string[] = []) {
    const upstream = await startUpstream(servers);
    const edge = await startEdge(servers, {
      mappings: [mappingOf({ requestHeaders })],
      targets: { hotel: remote(upstream) },
    });
    await sendRaw(edge.port, rawRequest('GET /v1/hotels', headers));
    return upstream.only().headers;
  }

  function checkRequest(what: string, rules: Partial<HeaderRules>, sent: readonly string[], expected: object) {
    it(`of requests ${what}`, async () => {
      const headers = await send({ add: [], remove: [], ...rules }, sent);
      for (const [name, value] of Object.entries(expected)) assert.equal(headers[name], value, name);
    });
  }

  checkRequest('add to what is there', { add: [added('x-a', 'ours')] }, ['X-A: theirs'], { 'x-a': 'theirs, ours' });
  checkRequest('add what is not there', { add: [added('x-a', 'ours')] }, [], { 'x-a': 'ours' });
  checkRequest('replace', { add: [added('x-a', 'ours', false)] }, ['X-A: 1', 'X-A: 2'], { 'x-a': 'ours' });
  checkRequest('remove', { remove: ['x-a', 'x-forwarded-for'] }, ['X-A: 1'], {
    'x-a': undefined,
    'x-forwarded-for': undefined,
  });
  checkRequest('have the last word', { add: [added('x-forwarded-proto', 'https', false)] }, [], {
    'x-forwarded-proto': 'https',
  });
  checkRequest(
    'fill in what Envoy fills in',
    { add: [added('x-a', '%PROTOCOL% from %DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%'), added('x-b', '100%% of %ODD%')] },
    [],
    { 'x-a': 'HTTP/1.1 from 127.0.0.1', 'x-b': '100% of %ODD%' },
  );

  it('of answers remove, replace and add', async () => {
    const upstream = await startUpstream(servers, (res) =>
      res.writeHead(200, { Server: 'odd/1.0', 'X-A': 'theirs', 'X-B': 'theirs', 'Set-Cookie': 'a=1' }).end('ok'),
    );
    const responseHeaders = {
      remove: ['server'],
      add: [added('x-a', 'ours'), added('x-b', 'ours', false), added('set-cookie', 'b=2')],
    };
    const edge = await startEdge(servers, {
      mappings: [mappingOf({ responseHeaders })],
      targets: { hotel: remote(upstream) },
    });
    const { headers } = await fetch(`${edge.origin}/v1/hotels`);
    assert.equal(headers.get('server'), null);
    assert.equal(headers.get('x-a'), 'theirs, ours');
    assert.equal(headers.get('x-b'), 'ours');
    assert.deepEqual(headers.getSetCookie(), ['a=1', 'b=2']);
  });
});
