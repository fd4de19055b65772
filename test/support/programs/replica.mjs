/** A service as a process: answers with its body's length. After SIGTERM it serves on for a while, announcing `Connection: close`, and then ends. */
import { createServer } from 'node:http';

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
process.once('SIGTERM', () => {
  isLeaving = true;
  setTimeout(() => server.close(), 300);
});
