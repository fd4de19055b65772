/** Connects to pods, whose addresses no network has, at ports of this machine, in a process that loads this file with `--import`. */
import { readFileSync } from 'node:fs';
import { type LookupFunction, Socket } from 'node:net';
import { mock } from 'node:test';

interface Target {
  readonly host?: string;
  readonly port?: number | string;
  readonly lookup?: LookupFunction;
}

const { connect } = Socket.prototype;

mock.method(Socket.prototype, 'connect', function connectToPod(this: Socket, ...args: unknown[]) {
  // Node calls it with an array of the arguments of `net.connect`.
  const list = Array.isArray(args[0]) ? args[0] : args;
  const { host, port, lookup, ...rest } = (list[0] ?? {}) as Target;
  const address = addressOf(host, lookup);
  if (address?.startsWith('10.244.')) list[0] = { ...rest, host: '127.0.0.1', port: portOf(`${address}:${port}`) };
  return Reflect.apply(connect, this, args);
});

/** undici passes the name in `Host` as the host, and a function that returns the address at once. */
function addressOf(host: string | undefined, lookup: LookupFunction | undefined): string | undefined {
  let found = host;
  lookup?.(host ?? '', {}, (_error, address) => {
    found = String(address);
  });
  return found;
}

/** Reads the file each time, because pods start later than this process. */
function portOf(address: string): number {
  return JSON.parse(readFileSync(process.env['POD_PORTS'] ?? '', 'utf8'))[address] ?? 0;
}
