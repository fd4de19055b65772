/** Starts nginx in front of the same upstream, with frontdesk's auth service. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { nginx } from '../../support/programs/proxy-process.ts';
import type { Child } from './child.ts';
import { usageOf } from './process-usage.ts';
import type { Backends } from './start-servers.ts';

/** Runs nginx as one process, like the other proxies. */
export function startNginx(port: number, directory: string, backends: Backends): Child {
  const configFile = join(directory, 'nginx.conf');
  writeFileSync(configFile, nginx.configure(serverConfiguration(port, backends), directory));
  const child = spawn(nginx.command, nginx.args(configFile, directory), { stdio: 'ignore' });
  return {
    process: child,
    usage: async () => usageOf(child.pid ?? 0),
    async stop() {
      if (child.exitCode !== null) return;
      child.kill();
      await once(child, 'exit');
    },
  };
}

function serverConfiguration(port: number, { upstreamPort, authPort }: Backends): string {
  return `
    upstream service { server 127.0.0.1:${upstreamPort}; keepalive 64; }
    upstream auth { server 127.0.0.1:${authPort}; keepalive 64; }
    server {
      listen 127.0.0.1:${port};
      client_max_body_size 0;
      keepalive_requests 1000000000;
      location /proxied/ {
        auth_request /auth;
        auth_request_set $user $upstream_http_x_travel_user;
        proxy_set_header X-Travel-User $user;
        proxy_set_header Connection "";
        proxy_http_version 1.1;
        proxy_pass http://service/;
      }
      location = /auth {
        internal;
        proxy_pass_request_body off;
        proxy_set_header Content-Length "";
        proxy_set_header Connection "";
        proxy_http_version 1.1;
        proxy_pass http://auth;
      }
    }`;
}
