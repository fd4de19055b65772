/** Runs a gateway for a custom service, with records and users in code. The service sees the user but no prefix. */
import { createFrontdesk, hashPassword } from 'frontdesk';
import Koa from 'koa';

const apiVersion = 'gateway/v1';

const tickets = new Koa();
tickets.use((ctx) => {
  ctx.body = { path: ctx.path, user: ctx.get('X-Travel-User') };
});

const desk = await createFrontdesk({
  only: ['gateway', 'auth', 'ratelimit'],
  port: Number(process.env['PORT'] ?? 3000),
  authPort: 0,
  ratelimitPort: 0,
  services: { tickets },
  config: {
    records: [
      {
        apiVersion,
        kind: 'Mapping',
        name: 'tickets',
        prefix: '/v1/tickets',
        service: 'tickets',
        labels: { gateway: [{ user: [{ user: { header: 'X-Travel-User', omit_if_not_present: true } }] }] },
      },
      {
        apiVersion,
        kind: 'AuthService',
        name: 'auth',
        auth_service: 'auth',
        proto: 'http',
        allowed_authorization_headers: ['X-Travel-User'],
      },
      { apiVersion, kind: 'RateLimitService', name: 'limits', service: 'ratelimit' },
    ],
    limits: [{ domain: 'gateway', descriptors: [{ key: 'user', rate_limit: { unit: 'day', requests_per_unit: 2 } }] }],
    users: [{ name: 'ann', password_hash: await hashPassword('secret') }],
  },
});

const { gateway } = await desk.listen();
process.stdout.write(`${gateway?.url}/v1/tickets/7\n`);

process.once('SIGTERM', () => desk.close());
