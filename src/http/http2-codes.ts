/** The error codes of HTTP/2, with which a stream or a connection ends (RFC 9113 section 7). */

/** By name. */
export const http2Codes = Object.freeze({
  NO_ERROR: 0,
  PROTOCOL_ERROR: 1,
  INTERNAL_ERROR: 2,
  FLOW_CONTROL_ERROR: 3,
  SETTINGS_TIMEOUT: 4,
  STREAM_CLOSED: 5,
  FRAME_SIZE_ERROR: 6,
  REFUSED_STREAM: 7,
  CANCEL: 8,
  COMPRESSION_ERROR: 9,
  CONNECT_ERROR: 10,
  ENHANCE_YOUR_CALM: 11,
  INADEQUATE_SECURITY: 12,
  HTTP_1_1_REQUIRED: 13,
});

const names = Object.keys(http2Codes);

/** Returns `CANCEL` for 8, for example, and `error 99` for a number that is no code. */
export function http2CodeName(code: number): string {
  return names[code] ?? `error ${code}`;
}
