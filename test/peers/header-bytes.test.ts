/** nginx and Caddy pass the bytes of header values on as the gateway does. */
import { headerBytesCases } from '../proxy/header-bytes.ts';
import { freePort } from '../support/programs/free-port.ts';
import { describeWith } from '../support/programs/installed.ts';
import { caddy, nginx, startProxy } from '../support/programs/proxy-process.ts';

/** They send the head before the body arrives only if they do not buffer. */
for (const [name, program, siteOf] of [
  [
    'nginx',
    nginx,
    (port: number, origin: string) =>
      `server { listen 127.0.0.1:${port}; location / { proxy_pass ${origin}; proxy_buffering off; } }`,
  ],
  [
    'Caddy',
    caddy,
    (port: number, origin: string) =>
      `http://:${port} {\n  bind 127.0.0.1\n  reverse_proxy ${origin} {\n    flush_interval -1\n  }\n}`,
  ],
] as const)
  describeWith(program.command, `${name} in front of a service`, () => {
    headerBytesCases(async ({ origin }, servers) => {
      const port = await freePort();
      const proxy = await startProxy(program, siteOf(port, origin), port);
      servers.later(proxy.remove);
      return proxy;
    });
  });
