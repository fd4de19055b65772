import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { createUpgrades, endedStatus, upgradeOf } from '#http';
import { withServer } from './raw-exchange.ts';

/** More than the buffers of two sockets hold. */
const large = Buffer.alloc(32 * 1024 * 1024);

/** A handler, and how its first response ended. */
function watched(answer: RequestListener) {
  let tell = (_status: number) => {};
  const status = new Promise<number>((resolve) => {
    tell = resolve;
  });
  const handler: RequestListener = (req, res) => {
    res.once('close', () => tell(endedStatus(res)));
    answer(req, res);
  };
  return { handler, status };
}

const head = (...lines: readonly string[]) => ['GET / HTTP/1.1', 'Host: x', ...lines, '', ''].join('\r\n');

describe('endedStatus', () => {
  for (const [name, answer] of Object.entries<RequestListener>({
    'was all there': (_req, res) => res.end(large),
    'was half there': (_req, res) => res.write(large),
    'fits into the buffers, and had not ended': (_req, res) => res.write('x'),
  }))
    it(`is 499 where the client left before it had taken an answer that ${name}`, async () => {
      const { handler, status } = watched(answer);
      await withServer({ handler }, async ({ open }) => {
        const socket = open();
        socket.write(head());
        await once(socket, 'data');
        socket.destroy();
        assert.equal(await status, 499);
      });
    });

  for (const line of ['Connection: keep-alive', 'Connection: close'])
    it(`is that of an answer that was taken, whatever becomes of the connection: ${line}`, async () => {
      const { handler, status } = watched((_req, res) => res.writeHead(404).end(large));
      await withServer({ handler }, async ({ open }) => {
        const socket = open();
        socket.resume().write(head(line));
        assert.equal(await status, 404);
        socket.destroy();
      });
    });

  it('is 101 for a connection that has switched, which ends only when somebody cuts it off', async () => {
    const upgrades = createUpgrades(() => true);
    const { handler, status } = watched((req) => upgradeOf(req)?.accept('echo').resume());
    await withServer({ handler }, async ({ server, open }) => {
      server.on('upgrade', upgrades.listener(handler));
      const socket = open();
      socket.write(head('Connection: Upgrade', 'Upgrade: echo'));
      await once(socket, 'data');
      socket.resetAndDestroy();
      assert.equal(await status, 101);
    });
  });
});
