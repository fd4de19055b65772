/** Bare Koa that makes a call of the rate-limit service for each request, with node:http2 and nothing around it. */
import { type ClientHttp2Session, connect } from 'node:http2';
import Koa from 'koa';
import { booking } from '../booking.ts';
import { requestMessage } from '../grpc-frames.ts';

/** Opened for the first request: the service may start later than this. */
let session: ClientHttp2Session | undefined;

function openSession(): ClientHttp2Session {
  if (session === undefined || session.destroyed)
    session = connect(`http://127.0.0.1:${process.env['RATELIMIT']}`).on('error', () => {});
  return session;
}

const message = requestMessage([1]);
const body = Buffer.concat([Buffer.alloc(5), message]);
body.writeUInt32BE(message.length, 1);

const head = {
  ':method': 'POST',
  ':path': '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
  'content-type': 'application/grpc',
  te: 'trailers',
};

function call(): Promise<void> {
  return new Promise((resolve, reject) => {
    openSession().request(head).once('error', reject).once('close', resolve).resume().end(body);
  });
}

const app = new Koa();
// It says nothing of the requests that come before the service listens.
app.silent = true;
app.use(async (ctx) => {
  await call();
  ctx.body = { ...booking };
});
app.listen(Number(process.env['PORT']), '127.0.0.1');
