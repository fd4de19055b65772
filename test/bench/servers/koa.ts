/** Bare Koa with an answer of the same size: what every ratio is measured against. */
import Koa from 'koa';
import { booking } from '../booking.ts';

const app = new Koa();
app.use((ctx) => {
  ctx.body = { ...booking };
});
app.listen(Number(process.env['PORT']), '127.0.0.1');
