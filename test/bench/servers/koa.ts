/** Bare Koa with a response of the same size, as the peer of most rows. */
import Koa from 'koa';
import { booking } from '../clients/booking.ts';

const app = new Koa();
app.use((ctx) => {
  ctx.body = { ...booking };
});
app.listen(Number(process.env['PORT']), '127.0.0.1');
