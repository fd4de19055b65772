/** Builds frames of HTTP/2 (RFC 9113) and header blocks of HPACK (RFC 7541) by hand, also those that no library sends. */

export const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

export const frameHeaderBytes = 9;

export const frameType = Object.freeze({
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
  priorityUpdate: 16,
  unknown: 200,
});

export const flag = Object.freeze({ ack: 1, endStream: 1, endHeaders: 4 });

export const setting = Object.freeze({
  headerTableSize: 1,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
  enableConnectProtocol: 8,
});

export function formatFrame(type: number, flags: number, stream: number, payload: Uint8Array = nothing): Buffer {
  const header = Buffer.alloc(frameHeaderBytes);
  header.writeUIntBE(payload.length, 0, 3);
  header.writeUInt8(type, 3);
  header.writeUInt8(flags, 4);
  header.writeUInt32BE(stream, 5);
  return Buffer.concat([header, payload]);
}

const nothing = Buffer.alloc(0);

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

export function formatSettings(settings: Readonly<Record<number, number>> = {}): Buffer {
  const entries = Object.entries(settings).map(([id, value]) => {
    return Buffer.concat([Buffer.from([0, Number(id)]), uint32(value)]);
  });
  return formatFrame(frameType.settings, 0, 0, Buffer.concat(entries));
}

export function formatWindowUpdate(stream: number, increment: number): Buffer {
  return formatFrame(frameType.windowUpdate, 0, stream, uint32(increment));
}

export function formatReset(stream: number, code = 8): Buffer {
  return formatFrame(frameType.reset, 0, stream, uint32(code));
}

/** A header without compression and without an entry in the dynamic table. */
export function literal(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0]), lengthOf(name), Buffer.from(name), lengthOf(value), Buffer.from(value)]);
}

/** A header that the dynamic table keeps. `indexedNewest` then repeats it in one byte. */
export function stored(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0x40]), literal(name, value).subarray(1)]);
}

export const indexedNewest = Buffer.from([0x80 | 62]);

/** A length in 7 bits, continued in further bytes (RFC 7541 section 5.1). */
function lengthOf(text: string): Buffer {
  const prefixMax = 127;
  if (text.length < prefixMax) return Buffer.from([text.length]);
  const bytes = [prefixMax];
  let rest = text.length - prefixMax;
  for (; rest >= 128; rest >>= 7) bytes.push((rest & 127) | 128);
  return Buffer.from([...bytes, rest]);
}

/** The header block of a request for `/`, from the static table but for the host. */
export function formatHead(method: 'GET' | 'POST', ...more: readonly Buffer[]): Buffer {
  return Buffer.concat([
    Buffer.from([method === 'GET' ? 0x82 : 0x83, 0x86, 0x84]),
    literal(':authority', 'a'),
    ...more,
  ]);
}

/** A complete request without a body. */
export function formatGet(stream: number, ...more: readonly Buffer[]): Buffer {
  return formatFrame(frameType.headers, flag.endStream | flag.endHeaders, stream, formatHead('GET', ...more));
}

/** The head of a request whose body follows. */
export function formatPost(stream: number, ...more: readonly Buffer[]): Buffer {
  return formatFrame(frameType.headers, flag.endHeaders, stream, formatHead('POST', ...more));
}
