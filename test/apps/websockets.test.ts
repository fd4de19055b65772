/** Many WebSockets behind the gateway: they take no place of the requests beside them. */
import assert from 'node:assert/strict';
import { testServers } from '../support/serve.ts';
import { askToSwitch, type Peer, speak } from '../support/wire/peer.ts';
import { startSwitchingUpstream } from '../support/wire/switching-upstream.ts';
import { shownRecord, startFront } from './front.ts';

describe('WebSockets behind the gateway', () => {
  const servers = testServers();

  it('leave room for requests while more of them are open than a service takes requests at once', async () => {
    const app = await startSwitchingUpstream(servers);
    const few = { circuit_breakers: [{ max_requests: 10 }] };
    const front = await startFront(servers, shownRecord('jupyter', app, few));
    const clients: Peer[] = [];
    while (clients.length < 40) {
      const client = speak(front.port, askToSwitch('/jupyter/socket'));
      await client.until('101 Switching Protocols');
      clients.push(client);
    }
    const ask = async () => (await fetch(`${front.origin}/jupyter/page`)).status;
    const answers = await Promise.all(Array.from({ length: 8 }, ask));
    assert.deepEqual(new Set(answers), new Set([200]));
    assert.ok(clients.every(({ socket }) => socket.readyState === 'open'));
    for (const { socket } of clients) socket.destroy();
  });
});
