/** A keyed hash of text, so that a client who does not know the seed cannot choose keys that collide. */
import { createHash } from 'node:crypto';

/** 64 bits, as two signed integers. */
export interface KeyHash {
  low: number;
  high: number;
}

/** Writes the hash of a text into an object. `kind` is below 256. */
export type HashKey = (into: KeyHash, kind: number, seconds: number, text: string) => void;

/** Texts of up to as many bytes are hashed without allocating memory. */
const shortBytes = 1_024;
/** Added to the kind of a text that is hashed as UTF-16, because UTF-8 has one replacement for all lone surrogates. */
const asUtf16 = 256;

/**
 * HalfSipHash-1-3 with 64 bits of output, by Aumasson and Bernstein (github.com/veorq/SipHash). Linux hashes the keys of
 * its tables with it too. The message is `kind` and `seconds`, of four bytes each, and the text. A test compares it with
 * the authors' program.
 */
export function createKeyedHash(seed: string): HashKey {
  const digest = createHash('sha256').update(seed).digest();
  const [key0, key1] = [digest.readInt32LE(0), digest.readInt32LE(4)];
  const encoder = new TextEncoder();
  const short = createMessage(shortBytes);

  function hashWords(into: KeyHash, words: Int32Array, count: number): void {
    let v0 = key0;
    let v1 = key1 ^ 0xee;
    let v2 = key0 ^ 0x6c796765;
    let v3 = key1 ^ 0x74656462;
    // The three rounds before each half of the output are those of words that are 0.
    for (let at = 0; at < count + 6; at += 1) {
      if (at === count) v2 ^= 0xee;
      if (at === count + 3) {
        into.low = v1 ^ v3;
        v1 ^= 0xdd;
      }
      const word = at < count ? (words[at] ?? 0) : 0;
      v3 ^= word;
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
      v0 ^= word;
    }
    into.high = v1 ^ v3;
  }

  function hashUtf16(into: KeyHash, kind: number, seconds: number, text: string): void {
    const encoded = Buffer.from(text, 'utf16le');
    const long = createMessage(encoded.length);
    long.text.set(encoded);
    hashWords(into, long.words, long.complete(kind + asUtf16, seconds, encoded.length));
  }

  return (into, kind, seconds, text) => {
    const { read, written } = encoder.encodeInto(text, short.text);
    // A text that is not ASCII, or that is too long, so that it was not read to its end.
    if (written !== text.length || read !== text.length) hashUtf16(into, kind, seconds, text);
    else hashWords(into, short.words, short.complete(kind, seconds, written));
  };
}

const prefixWords = 2;

/** A message whose text has at most `bytesMax` bytes. */
function createMessage(bytesMax: number) {
  const words = new Int32Array(prefixWords + Math.ceil((bytesMax + 1) / 4));
  return {
    words,
    /** Where to write the text. */
    text: new Uint8Array(words.buffer, prefixWords * 4, bytesMax),
    /** Adds the rest of the message to a text of as many bytes, and returns the number of words. */
    complete(kind: number, seconds: number, textBytes: number): number {
      words[0] = kind;
      words[1] = seconds;
      const last = prefixWords + (textBytes >> 2);
      const rest = (words[last] ?? 0) & ((1 << (8 * (textBytes & 3))) - 1);
      words[last] = rest | ((prefixWords * 4 + textBytes) << 24);
      return last + 1;
    },
  };
}
