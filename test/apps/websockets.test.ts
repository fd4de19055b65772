/** Many WebSockets behind the gateway: they take no place of the requests beside them. */
import assert from 'node:assert/strict';
import { testServers } from '../support/serve.ts';
import { speak, upgradeRequest } from '../support/wire/peer.ts';
import { startSwitchingUpstream } from '../support/wire/switching-upstream.ts';
import { shownRecord, startFront } from './front.ts';

/** More than a service takes requests at once (`max_requests`, 1024). */
const count = 1100;

describe('WebSockets behind the gateway', () => {
  const servers = testServers();

  it(`leave room for requests while ${count} of them are open`, async () => {
    const app = await startSwitchingUpstream(servers);
    const front = await startFront(servers, shownRecord('jupyter', app));
    const clients = Array.from({ length: count }, () => speak(front.port, upgradeRequest('/jupyter/socket')));
    await Promise.all(clients.map(({ until }) => until('101 Switching Protocols')));
    const ask = async () => (await fetch(`${front.origin}/jupyter/page`)).status;
    const answers = await Promise.all(Array.from({ length: 50 }, ask));
    assert.deepEqual(new Set(answers), new Set([200]));
    assert.ok(clients.every(({ socket }) => socket.readyState === 'open'));
    for (const { socket } of clients) socket.destroy();
  });
});
