/** Many WebSockets behind the gateway: they do not count against the limit on concurrent requests. */
import assert from 'node:assert/strict';
import { testServers } from '../support/serve.ts';
import { speak, upgradeRequest } from '../support/wire/peer.ts';
import { startSwitchingUpstream } from '../support/wire/switching-upstream.ts';
import { recipeRecord, startFront } from './front.ts';

/** More than the maximum number of concurrent requests to a service (`max_requests`, 1024). */
const count = 1100;

/** Opened concurrently. With more, the system's queue for new connections overflows on a busy machine. */
const batch = 100;

describe('WebSockets behind the gateway', () => {
  const servers = testServers();

  it(`do not block requests while ${count} of them are open`, async () => {
    const app = await startSwitchingUpstream(servers);
    const front = await startFront(servers, recipeRecord('jupyter', app));
    const clients: ReturnType<typeof speak>[] = [];
    while (clients.length < count) {
      const opening = Array.from({ length: batch }, () => speak(front.port, upgradeRequest('/jupyter/socket')));
      await Promise.all(opening.map(({ until }) => until('101 Switching Protocols')));
      clients.push(...opening);
    }
    const getPage = async () => (await fetch(`${front.origin}/jupyter/page`)).status;
    const statuses = await Promise.all(Array.from({ length: 50 }, getPage));
    assert.deepEqual(new Set(statuses), new Set([200]));
    assert.ok(clients.every(({ socket }) => socket.readyState === 'open'));
    for (const { socket } of clients) socket.destroy();
  });
});
