/** A DNS server over TCP that leads every name to 127.0.0.1. */
import type { Socket } from 'node:net';
import type { Served, TestServers } from '../serve.ts';

const headerBytes = 12;
/** The name of the question, type A, class IN, a minute, and the address in four bytes. */
const loopbackRecord = Buffer.from('c00c000100010000003c00047f000001', 'hex');

export function startDnsServer(servers: TestServers): Promise<Served> {
  return servers.tcp((socket: Socket) => {
    let received = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      // Each message follows its length (RFC 1035, section 4.2.2).
      while (received.length >= 2 && received.length >= 2 + received.readUInt16BE()) {
        const end = 2 + received.readUInt16BE();
        socket.write(framed(answerTo(received.subarray(2, end))));
        received = received.subarray(end);
      }
    });
  });
}

/** Names have no other address than one of IPv4. */
function answerTo(query: Buffer): Buffer {
  const questionEnd = query.indexOf(0, headerBytes) + 5;
  const isAddress = query.readUInt16BE(questionEnd - 4) === 1;
  const header = Buffer.alloc(headerBytes);
  query.copy(header, 0, 0, 2);
  header.writeUInt16BE(0x8180, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(isAddress ? 1 : 0, 6);
  const question = query.subarray(headerBytes, questionEnd);
  return Buffer.concat([header, question, isAddress ? loopbackRecord : Buffer.alloc(0)]);
}

function framed(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}
