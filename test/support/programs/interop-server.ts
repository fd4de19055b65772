/** Runs grpc-go's interop server, a gRPC service in another language. */

import type { TestServers } from '../serve.ts';
import type { Certificate } from '../wire/certificate.ts';
import { freePort } from './free-port.ts';
import { type ProxyProcess, type ProxyProgram, startProxy } from './proxy-process.ts';

/** In clear text, or over TLS with the certificate. */
export async function startInteropServer(servers: TestServers, tls?: Certificate): Promise<ProxyProcess> {
  const port = await freePort();
  const secure = tls === undefined ? [] : ['-use_tls', '-tls_cert_file', tls.file, '-tls_key_file', tls.keyFile];
  const program: ProxyProgram = {
    command: 'grpc-interop-server',
    configure: () => '',
    args: () => ['-port', String(port), ...secure],
  };
  const server = await startProxy(program, '', port);
  servers.later(server.remove);
  return server;
}
