/** Bare Koa that calls the rate-limit service for each request, with plain node:http2. */
import { type ClientHttp2Session, connect } from 'node:http2';
import Koa from 'koa';
import { booking } from '../clients/booking.ts';
import { requestMessage } from '../clients/grpc-frames.ts';

/** Opened at the first request, because the service may start after this process. */
let session: ClientHttp2Session | undefined;

function openSession(): ClientHttp2Session {
  if (session === undefined || session.destroyed)
    session = connect(`http://127.0.0.1:${process.env['RATELIMIT']}`).on('error', () => {});
  return session;
}

const message = requestMessage([1]);
const body = Buffer.concat([Buffer.alloc(5), message]);
body.writeUInt32BE(message.length, 1);

const headers = {
  ':method': 'POST',
  ':path': '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
  'content-type': 'application/grpc',
  te: 'trailers',
};

function callLimiter(): Promise<void> {
  return new Promise((resolve, reject) => {
    openSession().request(headers).once('error', reject).once('close', resolve).resume().end(body);
  });
}

const app = new Koa();
// Suppresses errors of requests that arrive before the service listens.
app.silent = true;
app.use(async (ctx) => {
  await callLimiter();
  ctx.body = { ...booking };
});
app.listen(Number(process.env['PORT']), '127.0.0.1');
