/** The text of a status, `grpc-message`: UTF-8 with percent-encoding (grpc/grpc, doc/PROTOCOL-HTTP2.md). */
import { decodeByte, textFromBytes } from '#foundation';

/** Clients refuse responses with more than 8 KiB of headers. */
const encodedLengthMax = 1024;

/**
 * Encodes a text without white space at its ends, which HTTP does not keep. Cuts it after a character if the result would
 * be longer than 1,024 bytes.
 */
export function encodeGrpcMessage(text: string): string {
  const trimmed = text.trim();
  if (trimmed.length <= encodedLengthMax && unencoded.test(trimmed)) return trimmed;
  let encoded = '';
  for (const character of trimmed.slice(0, encodedLengthMax).toWellFormed()) {
    const added = unencoded.test(character) ? character : percentEncode(character);
    if (encoded.length + added.length > encodedLengthMax) break;
    encoded += added;
  }
  return encoded.trimEnd();
}

/** Percent-Byte-Unencoded: visible ASCII characters and spaces, except `%`. */
const unencoded = /^[\x20-\x24\x26-\x7e]*$/;

function percentEncode(character: string): string {
  return Buffer.from(character).toString('hex').toUpperCase().replace(/../g, '%$&');
}

/** Decodes what is encoded correctly, and keeps everything else, because a message must not get lost. */
export function decodeGrpcMessage(encoded: string): string {
  if (!encoded.includes('%')) return encoded;
  const bytes = encoded.replace(/%[\dA-F]{2}/gi, decodeByte);
  return textFromBytes(bytes);
}
