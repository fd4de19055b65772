/** The request headers that a mapping adds and removes. */
import assert from 'node:assert/strict';
import type { HeaderRules, HeaderValue } from '#config';
import { startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { startUpstream } from '../support/upstream.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

const added = (name: string, value: string, append = true): HeaderValue => ({ name, value, append });

describe('header rules for requests', () => {
  const servers = testServers();

  function checkRequest(what: string, rules: Partial<HeaderRules>, sent: readonly string[], expected: object) {
    it(what, async () => {
      const upstream = await startUpstream(servers);
      const mapping = { requestHeaders: { add: [], remove: [], ...rules } };
      const { port } = await startEdge(servers, { upstream, mapping });
      await sendRaw(port, rawRequest('GET /v1/hotels', sent));
      const { headers } = upstream.only();
      for (const [name, value] of Object.entries(expected)) assert.equal(headers[name], value, name);
    });
  }

  checkRequest('append to a header', { add: [added('x-a', 'ours')] }, ['X-A: theirs'], { 'x-a': 'theirs, ours' });
  checkRequest('replace a header', { add: [added('x-a', 'ours', false)] }, ['X-A: 1', 'X-A: 2'], { 'x-a': 'ours' });
  checkRequest('remove headers', { remove: ['x-a', 'x-forwarded-for'] }, ['X-A: 1'], {
    'x-a': undefined,
    'x-forwarded-for': undefined,
  });
  checkRequest('replace a header of the gateway', { add: [added('x-forwarded-proto', 'https', false)] }, [], {
    'x-forwarded-proto': 'https',
  });
  checkRequest(
    'substitute the same variables as Envoy',
    { add: [added('x-a', '%PROTOCOL% from %DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%'), added('x-b', '100%% of %ODD%')] },
    [],
    { 'x-a': 'HTTP/1.1 from 127.0.0.1', 'x-b': '100% of %ODD%' },
  );
});
