/** Mounts a complete desk at /travel in a Koa app. Its redirects and URLs include /travel. */
import { createFrontdesk } from 'frontdesk';
import Koa from 'koa';
import mount from 'koa-mount';

const desk = await createFrontdesk({ config: './config', databaseUrl: 'sqlite::memory:', demo: true });

const app = new Koa();
app.use(mount('/travel', desk.middleware));
app.use((ctx) => {
  ctx.body = 'Hello from the host app.\n';
});

const server = app.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1', () => {
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  process.stdout.write(`http://127.0.0.1:${port}/travel/v1/messages/1\n`);
});

process.once('SIGTERM', () => server.close(() => desk.close()));
