/** Finds a port for a process that cannot use port 0. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ephemeral ports (from 32,768 on), so that no other test gets one of these through port 0. */
const [first, last] = [15_000, 30_000];

/** A port that was free a moment ago. */
export async function freePort(): Promise<number> {
  const port = randomInt(first, last);
  const server = createServer().listen(port, '127.0.0.1');
  const isFree = await once(server, 'listening').then(
    () => true,
    () => false,
  );
  if (!isFree) return freePort();
  server.close();
  await once(server, 'close');
  return port;
}
