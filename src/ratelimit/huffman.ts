/** The Huffman code of HTTP/2's header fields, as far as it must be read (RFC 7541 section 5.2 and appendix B). */

/** The bits of each byte's code, from 0 to 255. The codes follow from them: the shorter first, then the lesser byte. */
const codeBits = `
  13 23 28 28 28 28 28 28 28 24 30 28 28 30 28 28 28 28 28 28 28 28 30 28 28 28 28 28 28 28 28 28
  6 10 10 12 13 6 8 11 10 10 8 11 8 6 6 6 5 5 5 6 6 6 6 6 6 6 7 8 15 6 12 10
  13 6 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 7 8 7 8 13 19 13 14 6
  15 5 6 5 6 5 6 6 6 5 7 7 6 6 6 5 6 7 6 5 5 6 7 7 7 7 7 15 11 14 13 28
  20 22 20 20 22 22 22 23 22 23 23 23 23 23 24 23 24 24 22 23 24 23 23 23 23 21 22 23 22 23 23 24
  22 21 20 22 22 23 23 21 23 22 22 24 21 22 23 23 21 21 22 21 23 22 23 23 20 22 22 22 23 22 22 23
  26 26 20 19 22 23 22 25 26 26 26 27 27 26 24 25 19 21 26 27 27 26 27 24 21 21 26 26 28 27 27 27
  20 24 20 21 22 21 21 23 22 22 25 25 24 24 26 23 26 27 26 26 27 27 27 27 27 28 27 27 27 27 27 26`;

const codeBitsMax = 30;

/**
 * The code as a tree: two places for each node, one for a 0 and one for a 1. A place holds the node that follows, or below
 * 0 the complement of a byte; 0 is where nothing follows: the end-of-string code is no byte, and never right.
 */
const tree = treeOf(codeBits.trim().split(/\s+/).map(Number));

function treeOf(bitsOfBytes: readonly number[]): Int16Array {
  const places = new Int16Array(1_024);
  let nodes = 1;
  let code = 0;
  for (let bits = 1; bits <= codeBitsMax; bits += 1) {
    code *= 2;
    bitsOfBytes.forEach((its, byte) => {
      if (its !== bits) return;
      let node = 0;
      for (let bit = bits - 1; bit > 0; bit -= 1) {
        const place = 2 * node + ((code >>> bit) & 1);
        places[place] ||= nodes++;
        node = places[place] ?? 0;
      }
      places[2 * node + (code & 1)] = ~byte;
      code += 1;
    });
  }
  return places;
}

/** Throws for bytes that are no such code, and for an end that is more than the padding of the last byte. */
export function decodeHuffman(bytes: Uint8Array): string {
  let text = '';
  let node = 0;
  // Of the code that is not finished, and whether they are all 1.
  let bits = 0;
  let ones = 0;
  for (let at = 0; at < 8 * bytes.length; at += 1) {
    const one = ((bytes[at >>> 3] ?? 0) >>> (7 - (at & 7))) & 1;
    const next = tree[2 * node + one] ?? 0;
    if (next === 0) throw new RangeError('a field is not encoded as HPACK has it');
    bits += 1;
    ones += one;
    node = next;
    if (next > 0) continue;
    text += String.fromCharCode(~next);
    node = bits = ones = 0;
  }
  if (bits > 7 || ones < bits) throw new RangeError('a field is not padded as HPACK has it');
  return text;
}
