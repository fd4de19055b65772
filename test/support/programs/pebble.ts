/** Runs Pebble, a certificate authority (ACME) for tests. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { text } from 'node:stream/consumers';
import type { TestServers } from '../serve.ts';
import type { Certificate } from '../wire/certificate.ts';
import { startDnsServer } from '../wire/dns-server.ts';
import { freePort } from './free-port.ts';
import { startProxy } from './proxy-process.ts';

export interface Authority {
  /** The URL for ACME clients. */
  readonly directoryUrl: string;
  /** The root certificate of what it issues. */
  readonly root: string;
}

/**
 * Waits for nothing, looks at a challenge for each order, and rejects no valid nonce: it would reject one in twenty, and
 * certbot gives up after two in a row.
 */
const environment = ['PEBBLE_VA_NOSLEEP=1', 'PEBBLE_AUTHZREUSE=0', 'PEBBLE_WFE_NONCEREJECT=0'];

/**
 * Every host leads to this machine.
 * @param own the certificate of its own port
 * @param challengePort where it looks for challenges, instead of port 80
 */
export async function startPebble(servers: TestServers, own: Certificate, challengePort: number): Promise<Authority> {
  const [port, managementPort] = [await freePort(), await freePort()];
  const dns = await startDnsServer(servers);
  const configuration = {
    pebble: {
      listenAddress: `127.0.0.1:${port}`,
      managementListenAddress: `127.0.0.1:${managementPort}`,
      certificate: own.file,
      privateKey: own.keyFile,
      httpPort: challengePort,
      tlsPort: challengePort,
    },
  };
  const program = {
    command: 'env',
    configure: (text: string) => text,
    args: (file: string) => [...environment, 'pebble', '-config', file, '-dnsserver', `127.0.0.1:${dns.port}`],
  };
  const { remove } = await startProxy(program, JSON.stringify(configuration), port);
  servers.later(remove);
  const root = await read(`https://127.0.0.1:${managementPort}/roots/0`, own.cert);
  return { directoryUrl: `https://127.0.0.1:${port}/dir`, root };
}

async function read(url: string, ca: string): Promise<string> {
  const [answer] = (await once(get(url, { ca, timeout: 10_000 }), 'response')) as [IncomingMessage];
  return text(answer);
}
