/** Sends a body byte by byte, and counts how many of its chunks the reader keeps in memory. */
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { eventually } from '../waiting.ts';

export interface ReadChunks {
  /** Call it before anything reads the request. */
  readonly watch: (req: IncomingMessage) => void;
  readonly count: () => number;
  readonly kept: () => number;
}

export function createReadChunks(): ReadChunks {
  const chunks: WeakRef<Buffer>[] = [];
  return {
    watch(req) {
      const read = req.read.bind(req);
      req.read = (size) => {
        const chunk: Buffer | null = read(size);
        if (chunk !== null) chunks.push(new WeakRef(chunk));
        return chunk;
      };
    },
    count: () => chunks.length,
    kept() {
      setFlagsFromString('--expose-gc');
      runInNewContext('gc')();
      return chunks.filter((chunk) => chunk.deref() !== undefined).length;
    },
  };
}

/** Sends all bytes of the body except the last, each after the previous one has been read. */
export async function sendByteByByte(port: number, head: string, body: string, chunks: ReadChunks): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').setNoDelay();
  socket.write(head);
  for (let sent = 1; sent < body.length; sent += 1) {
    socket.write(body.charAt(sent - 1));
    await eventually(() => assert.equal(chunks.count(), sent), 0);
  }
  return socket;
}
