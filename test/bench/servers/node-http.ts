/** Bare node:http with a fixed response, as the lower bound of all rows. */
import { createServer } from 'node:http';
import { booking } from '../clients/booking.ts';

const body = JSON.stringify(booking);

createServer((_request, response) => {
  response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) });
  response.end(body);
}).listen(Number(process.env['PORT']), '127.0.0.1');
