/** A Mapping that is refused keeps its place in the table, and answers 503 there. */
import assert from 'node:assert/strict';
import type { Mapping } from '#config';
import { authRecordOf, explainOf, gatewayOf, mappingOf, startEdge } from '../support/edge.ts';
import { testServers } from '../support/serve.ts';
import { rawRequest, sendRaw } from '../support/wire/raw-client.ts';

const open = mappingOf({ name: 'site', prefix: '/', rewrite: '', bypassAuth: true });
const refused: Mapping = {
  ...mappingOf({ name: 'admin', prefix: '/admin' }),
  refusal: 'Mapping shop/admin is refused',
};

describe('a refused Mapping', () => {
  const servers = testServers();
  const asked: string[] = [];

  async function send(path: string): Promise<string> {
    const { port } = await startEdge(servers, {
      mappings: [open, refused],
      services: { hotel: async ({ response }) => void Object.assign(response, { body: 'seen' }) },
      authService: authRecordOf(),
      authPort: () => {
        asked.push(path);
        return { outcome: 'allow', headers: {} };
      },
    });
    return sendRaw(port, rawRequest(`GET ${path}`));
  }

  it('answers 503 below its prefix, and asks nobody', async () => {
    const response = await send('/admin/users');
    assert.match(response, /^HTTP\/1\.1 503 .*\r\nRetry-After: 5\r\n/s);
    assert.doesNotMatch(response, /shop\/admin/);
    assert.deepEqual(asked, []);
  });

  it('leaves other requests to other Mappings', async () => {
    assert.match(await send('/public'), /^HTTP\/1\.1 200 /);
  });

  for (const path of ['/ADMIN', '/admin;x', '/%61dmin', '/admin%2Fusers'])
    it(`cannot be avoided by another spelling: ${path}`, async () => {
      assert.match(await send(path), /^HTTP\/1\.1 (?:400|503) /);
    });

  it('is explained with the object that is refused', async () => {
    const services = { hotel: async () => {} };
    const gateway = gatewayOf({ mappings: [{ ...open, bypassAuth: false }, refused], services });
    const { outcome } = await explainOf(gateway)({ method: 'GET', url: '/admin' });
    const { stage, status, detail } = outcome.kind === 'refused' ? outcome : {};
    assert.deepEqual([stage, status, detail], ['forwarding', 503, 'Mapping shop/admin is refused']);
  });
});
