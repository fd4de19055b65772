/** CheckRequest: the request of a client, as a proxy describes it to an auth service. */
import { isUtf8 } from 'node:buffer';
import { bytesFromText, textFromBytes } from '#foundation';
import {
  content,
  entriesOf,
  joinFields,
  type MessageView,
  number,
  submessage,
  textMap,
  viewMessage,
} from './fields.ts';

/**
 * The attributes of a request (envoy/service/auth/v3/attribute_context.proto). Texts of the request have one character
 * for each byte, as Node shows them, except for the body.
 */
export interface CheckAttributes {
  /** The client, as the proxy has found it. */
  readonly source: PeerAddress | undefined;
  /** The proxy. */
  readonly destination: PeerAddress | undefined;
  /** The id of the request. */
  readonly id: string;
  readonly method: string;
  /** Alternating names and values. Names are in lower case, and include pseudo headers such as `:path`. */
  readonly headers: readonly string[];
  /** Includes the query. */
  readonly path: string;
  readonly host: string;
  /** `http` or `https`. */
  readonly scheme: string;
  /** The number of bytes of the body, or -1 if it is unknown. */
  readonly size: number;
  /** `HTTP/1.1`. */
  readonly protocol: string;
  /** The body, or its beginning. Undefined if it is not sent. */
  readonly body: Uint8Array | undefined;
  /** What the route passes to the auth service. */
  readonly contextExtensions: readonly (readonly [name: string, value: string])[];
  /** The name of the server in the client's TLS handshake. */
  readonly serverName: string | undefined;
}

export interface PeerAddress {
  readonly address: string;
  readonly port: number;
  /** The identity of its certificate. */
  readonly principal: string | undefined;
}

/** Ample: proxies refuse headers of more than 60 KiB. */
export const checkBytesMax = 262_144;

/** For more than a thousand headers. */
const fieldsMax = 4096;

export function encodeCheck(check: CheckAttributes): Buffer {
  const { method, headers, path, host, scheme, size, protocol, body, serverName } = check;
  const [, query = ''] = /\?(.*)$/s.exec(path) ?? [];
  const http = joinFields(
    content(1, check.id),
    content(2, method),
    textMap(3, joinedHeaders(headers)),
    content(4, textFromBytes(path)),
    content(5, textFromBytes(host)),
    content(6, scheme),
    content(7, textFromBytes(query)),
    size < 0 ? [] : number(9, size),
    content(10, protocol),
    // `body` must be text.
    body === undefined ? [] : content(isUtf8(body) ? 11 : 12, body),
  );
  const attributes = joinFields(
    submessage(1, check.source && encodePeer(check.source)),
    submessage(2, check.destination && encodePeer(check.destination)),
    submessage(4, joinFields(submessage(2, http))),
    textMap(10, check.contextExtensions),
    submessage(12, serverName === undefined ? undefined : joinFields(content(1, serverName))),
  );
  return joinFields(submessage(1, attributes));
}

/** A map has each name once. */
function joinedHeaders(pairs: readonly string[]): readonly (readonly [name: string, value: string])[] {
  const joined = new Map<string, string>();
  for (let index = 0; index + 1 < pairs.length; index += 2) {
    const [name = '', value = ''] = pairs.slice(index, index + 2);
    const before = joined.get(name);
    const separator = name === 'cookie' ? '; ' : ',';
    joined.set(name, before === undefined ? value : before + separator + value);
  }
  return Array.from(joined, ([name, value]) => [name, textFromBytes(value)] as const);
}

function encodePeer({ address, port, principal }: PeerAddress): Buffer {
  const socketAddress = joinFields(content(2, address), number(3, port));
  return joinFields(submessage(1, joinFields(submessage(1, socketAddress))), content(4, principal));
}

/**
 * Ignores unknown fields. Throws an Error for bytes that are not a CheckRequest, or without a request. Names of headers
 * are then in lower case.
 */
export function decodeCheck(message: Uint8Array): CheckAttributes {
  const attributes = viewMessage(message, fieldsMax).view(1);
  const http = attributes?.view(4)?.view(2);
  if (attributes === undefined || http === undefined) throw new Error('the message has no request');
  return {
    source: decodePeer(attributes.view(1)),
    destination: decodePeer(attributes.view(2)),
    id: http.text(1),
    method: http.text(2),
    headers: decodeHeaders(http),
    path: bytesFromText(http.text(4)),
    host: bytesFromText(http.text(5)),
    scheme: http.text(6),
    size: http.number(9),
    protocol: http.text(10),
    body: http.content(11) ?? http.content(12),
    contextExtensions: entriesOf(attributes.views(10)),
    serverName: attributes.view(12)?.text(1),
  };
}

/** A proxy that keeps headers as they are (`encode_raw_headers`) sends a HeaderMap instead. */
function decodeHeaders(http: MessageView): readonly string[] {
  const joined = entriesOf(http.views(3)).map((entry) => entry.map(bytesFromText));
  const raw = http.view(13)?.views(1).map(decodeHeaderValue) ?? [];
  return [...joined, ...raw].flatMap(([name = '', value = '']) => [name.toLowerCase(), value]);
}

/** Returns the name and the value of a HeaderValue (envoy/config/core/v3/base.proto). */
export function decodeHeaderValue(header: MessageView): readonly [name: string, value: string] {
  const raw = header.content(3);
  return [bytesFromText(header.text(1)), raw === undefined ? bytesFromText(header.text(2)) : raw.toString('latin1')];
}

/** Undefined for a peer without an IP address, such as a Unix socket. */
function decodePeer(peer: MessageView | undefined): PeerAddress | undefined {
  const socketAddress = peer?.view(1)?.view(1);
  if (socketAddress === undefined) return undefined;
  return { address: socketAddress.text(2), port: socketAddress.number(3), principal: peer?.text(4) || undefined };
}
