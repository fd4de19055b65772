/** An app on node:http2 that mounts frontdesk learns from the log what to change. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:http2';
import Koa from 'koa';
import mount from 'koa-mount';
import { desksOf, mappingRecord } from '../support/desks.ts';
import { testServers } from '../support/serve.ts';

describe('a desk in an app on node:http2', () => {
  const servers = testServers();
  const openDesk = desksOf(servers);

  it('rejects a request with 500, and logs that HTTP/2 belongs in front of the app', async () => {
    const errors: unknown[] = [];
    const error = (fields: { readonly err?: unknown }) => void errors.push(fields.err);
    const upstream = await servers.http((_req, res) => void res.end());
    const records = [mappingRecord('all', '/', upstream.origin, { bypass_auth: true })];
    const desk = await openDesk({ config: { records }, only: ['gateway'], logger: { info() {}, warn() {}, error } });
    const server = createServer(new Koa().use(mount('/travel', desk.middleware)).callback());
    const client = connect((await servers.listen(server)).origin);
    servers.later(() => client.destroy());
    const [headers] = await once(client.request({ ':path': '/travel/a' }), 'response');
    assert.equal(headers[':status'], 500);
    assert.equal(errors.length, 1);
    assert.match(String(errors[0]), /runs on node:http2: use node:http or node:https/);
  });
});
