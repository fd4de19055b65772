/** The errors of calls over HTTP/2, by code. Errors of the network and of TLS keep their own codes. */

/**
 * - `HTTP2_UNSUPPORTED`: the server does not speak HTTP/2. Nothing was sent.
 * - `HTTP2_CONNECT_TIMEOUT`: there was no session in time. Nothing was sent.
 * - `HTTP2_REFUSED`: the server has not processed the request, so that it may be sent again (RFC 9113 section 8.7).
 * - `HTTP2_RESET`: the server gave up this request, which it may have processed.
 * - `HTTP2_PROTOCOL`: the server violates HTTP/2.
 * - `HTTP2_HEADERS_OVERFLOW`: the headers of the response are too large.
 * - `HTTP2_BODY_LENGTH`: the body of the request does not have the declared length.
 * - `HTTP2_INVALID_REQUEST`: the path or a header has invalid characters. Nothing was sent.
 * - `HTTP2_DESTROYED`: the client is closed.
 * - `ECONNRESET`: the connection ended. `ETIMEDOUT`: the server does not reply to a PING.
 */
export type Http2ErrorCode =
  | 'HTTP2_UNSUPPORTED'
  | 'HTTP2_CONNECT_TIMEOUT'
  | 'HTTP2_REFUSED'
  | 'HTTP2_RESET'
  | 'HTTP2_PROTOCOL'
  | 'HTTP2_HEADERS_OVERFLOW'
  | 'HTTP2_BODY_LENGTH'
  | 'HTTP2_INVALID_REQUEST'
  | 'HTTP2_DESTROYED'
  | 'ECONNRESET'
  | 'ETIMEDOUT';

export class Http2Error extends Error {
  override readonly name = 'Http2Error';
  readonly code: Http2ErrorCode;
  /** The error code of the RST_STREAM frame, if the server has sent one. */
  readonly resetCode: number | undefined;

  constructor(code: Http2ErrorCode, message: string, options: { cause?: unknown; resetCode?: number } = {}) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.code = code;
    this.resetCode = options.resetCode;
  }
}
