/** Connects to pods, whose addresses no network has, at ports of this machine, in a process that loads this file with `--import`. */
import { readFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { mock } from 'node:test';

const { connect } = Socket.prototype;

mock.method(Socket.prototype, 'connect', function connectToPod(this: Socket, ...args: unknown[]) {
  // Node calls it with an array of the arguments of `net.connect`.
  const list = Array.isArray(args[0]) ? args[0] : args;
  const { host, port } = list[0] ?? {};
  if (host?.startsWith('10.244.')) list[0] = { ...list[0], host: '127.0.0.1', port: portOf(`${host}:${port}`) };
  return Reflect.apply(connect, this, args);
});

/** Reads the file each time, because pods start later than this process. */
function portOf(address: string): number {
  return JSON.parse(readFileSync(process.env['POD_PORTS'] ?? '', 'utf8'))[address] ?? 0;
}
