/**
 * A service that responds with the length of the request body. After SIGTERM it sends `Connection: close`, and ends
 * when its clients have closed all connections.
 */
import { createServer } from 'node:http';
import { Server } from 'node:net';

let isLeaving = false;
const server = createServer((req, res) => {
  let bytes = 0;
  req.on('data', (chunk) => {
    bytes += chunk.length;
  });
  req.on('end', () => {
    if (isLeaving) res.setHeader('Connection', 'close');
    res.end(String(bytes));
  });
});
server.listen(Number(process.argv[2]), '127.0.0.1', () => process.stdout.write('ready\n'));
// The system resets connections that are still queued when the listener closes, so it waits until no more arrive.
const quietMs = 250;
process.once('SIGTERM', () => {
  isLeaving = true;
  let accepted = 0;
  server.on('connection', () => {
    accepted += 1;
  });
  // An HTTP server's `close` would also close idle connections, but a request may be on its way on each of them.
  const close = () => Server.prototype.close.call(server, () => process.exit());
  function closeWhenQuiet() {
    const before = accepted;
    // After the timer, the event loop accepts what is queued, even if the process had no time for it before.
    setTimeout(() => setImmediate(() => (accepted === before ? close() : closeWhenQuiet())), quietMs);
  }
  closeWhenQuiet();
});
