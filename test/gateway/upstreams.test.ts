/** Connections to services: shared where they are alike, and ended with the gateway. */
import assert from 'node:assert/strict';
import { createUpstreams } from '../../src/gateway/upstreams.ts';
import { testServers } from '../support/serve.ts';
import { createSignal } from '../support/signal.ts';
import { startUpstream } from '../support/upstream.ts';

describe('upstreams', () => {
  const servers = testServers();

  it('share one agent for each connect time-out, and with no other instance', () => {
    const upstreams = createUpstreams();
    assert.equal(upstreams.dispatcher(3000), upstreams.dispatcher(3000));
    assert.notEqual(upstreams.dispatcher(3000), upstreams.dispatcher(200));
    assert.notEqual(upstreams.dispatcher(3000), createUpstreams().dispatcher(3000));
  });

  it('finish what runs before they are closed, however often that is asked', async () => {
    const arrived = createSignal();
    let answer = () => {};
    const { origin } = await startUpstream(servers, (res) => {
      answer = () => void res.end('late');
      arrived.give();
    });
    const upstreams = createUpstreams();
    const running = upstreams.dispatcher(3000).request({ origin, path: '/', method: 'GET' });
    await arrived.given;
    const closed = Promise.all([upstreams.close(), upstreams.close()]);
    answer();
    assert.equal(await (await running).body.text(), 'late');
    await closed;
    await upstreams.close();
  });
});
