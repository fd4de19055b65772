/** The first message of a TLS 1.2 client that offers ciphers which today's TLS libraries cannot even name. */
import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';

/** What a server responds with: the cipher that it chose, and its compression, or the number of its alert. */
export type ServerChoice = { readonly cipher: number; readonly compression: number } | { readonly alert: number };

interface Offer {
  readonly host: string;
  /** Numbers from the registry of cipher suites. */
  readonly ciphers: readonly number[];
}

/** Connects, offers the ciphers and also compression, and disconnects after the first answer. */
export function offerTo(port: number, offer: Offer): Promise<ServerChoice> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(clientHello(offer)));
    let received = Buffer.alloc(0);
    socket.setTimeout(10_000, () => socket.destroy(new Error('the server did not answer')));
    socket.once('error', reject);
    socket.once('close', () => reject(new Error(`the server closed after ${received.toString('hex')}`)));
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < recordHeaderBytes || received.length < recordHeaderBytes + received.readUInt16BE(3)) return;
      resolve(choiceIn(received));
      socket.destroy();
    });
  });
}

const recordHeaderBytes = 5;
const alertRecord = 21;
/** Of the record, of the message, the version and the random bytes. */
const sessionIdAt = recordHeaderBytes + 4 + 2 + 32;

function choiceIn(record: Buffer): ServerChoice {
  if (record[0] === alertRecord) return { alert: record.readUInt8(recordHeaderBytes + 1) };
  const cipherAt = sessionIdAt + 1 + record.readUInt8(sessionIdAt);
  return { cipher: record.readUInt16BE(cipherAt), compression: record.readUInt8(cipherAt + 2) };
}

/** RFC 5246, section 7.4.1.2. */
function clientHello({ host, ciphers }: Offer): Buffer {
  const name = Buffer.concat([Buffer.from([0]), sized(2, Buffer.from(host))]);
  const extensions = [
    extension(0, sized(2, name)),
    // The groups x25519 and P-256.
    extension(10, sized(2, numbers([0x001d, 0x0017]))),
    extension(11, sized(1, Buffer.from([0]))),
    // Signatures: ECDSA and RSA with SHA-256, and with SHA-1 for old ciphers.
    extension(13, sized(2, numbers([0x0403, 0x0804, 0x0401, 0x0203, 0x0201]))),
  ];
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    randomBytes(32),
    sized(1, Buffer.alloc(0)),
    sized(2, numbers(ciphers)),
    // DEFLATE, or none.
    sized(1, Buffer.from([1, 0])),
    sized(2, Buffer.concat(extensions)),
  ]);
  const message = Buffer.concat([Buffer.from([1]), sized(3, body)]);
  return Buffer.concat([Buffer.from([22, 3, 1]), sized(2, message)]);
}

function extension(type: number, content: Buffer): Buffer {
  return Buffer.concat([numbers([type]), sized(2, content)]);
}

/** The content after its length, which has this many bytes. */
function sized(lengthBytes: number, content: Buffer): Buffer {
  const length = Buffer.alloc(lengthBytes);
  length.writeUIntBE(content.length, 0, lengthBytes);
  return Buffer.concat([length, content]);
}

function numbers(values: readonly number[]): Buffer {
  return Buffer.from(values.flatMap((value) => [value >> 8, value & 0xff]));
}
