/** A desk under test: its base URLs, and functions that send requests to them. */
import request, { type Test } from 'supertest';
import { openHttp2 } from '../support/wire/http2-client.ts';
import { rawRequest, sendRaw, statusOf } from '../support/wire/raw-client.ts';

export interface Desk {
  /** Has no trailing slash. Includes the mount path, if any. */
  readonly gatewayUrl: string;
  readonly authUrl: string;
  /** `grpc://host:port` */
  readonly ratelimitUrl: string;
  readonly ratelimitHttpUrl: string;
  /** Whether clients speak HTTP/2, without TLS with prior knowledge. @default false */
  readonly http2?: boolean;
  /** The certificate to trust, if clients use TLS. */
  readonly ca?: string;
  readonly close: () => Promise<void>;
}

/** Returns the desk. It exists when the tests run, but not when they are declared. */
export type OpenDesk = () => Desk;

export type Method = 'get' | 'head' | 'post' | 'put' | 'patch' | 'delete' | 'options';

/** Sends a request without credentials. Does not follow redirects. */
export function call(desk: OpenDesk, path: string, method: Method = 'get'): Test {
  return callAt(desk, 'gatewayUrl', path, method);
}

type HttpListener = 'gatewayUrl' | 'authUrl' | 'ratelimitHttpUrl';

/** Sends a request to one of the listeners. */
export function callAt(desk: OpenDesk, listener: HttpListener, path: string, method: Method = 'get'): Test {
  const { [listener]: url, http2 = false, ca } = desk();
  const sent = request(url, { http2 })[method](path);
  return ca === undefined ? sent : sent.ca(ca);
}

export interface PathResponse {
  readonly status: number;
  readonly location: string | undefined;
}

/** Sends a GET whose path is not changed, as client libraries would do. */
export async function getPath(
  desk: OpenDesk,
  listener: HttpListener,
  path: string,
  headers: Readonly<Record<string, string>>,
): Promise<PathResponse> {
  const { [listener]: url, http2 = false, ca } = desk();
  if (http2) {
    const client = openHttp2(url, { ca });
    const response = await client.send({ ':path': path, ...headers });
    client.session.destroy();
    return { status: response.status, location: response.headers['location']?.toString() };
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  const response = await sendRaw(Number(new URL(url).port), rawRequest(`GET ${path}`, lines));
  return { status: statusOf(response), location: /^location: (.*)\r$/im.exec(response)?.[1] };
}

/** Sends a request as the user who owns most of the demo data. */
export function callAsDemo(desk: OpenDesk, path: string, method: Method = 'get'): Test {
  return call(desk, path, method).auth('demo', 'demo');
}

/** Returns the mount path of the desk, or `''`. */
export function mountPath(desk: OpenDesk): string {
  return new URL(desk().gatewayUrl).pathname.replace(/\/$/, '');
}

/** Converts a link with an absolute path to a path below the base URL. */
export function below(desk: OpenDesk, link: string): string {
  const mount = mountPath(desk);
  if (!link.startsWith(`${mount}/`)) throw new Error(`${link} is not below ${mount}`);
  return link.slice(mount.length);
}

interface Faulty {
  readonly errors: readonly { readonly pointer?: string; readonly parameter?: string }[];
}

/** Returns the `pointer` into the body, or the query `parameter`, of each entry in `errors`. */
export function pointersOf({ errors }: Faulty): string[] {
  return errors.map(({ pointer, parameter = '' }) => pointer ?? parameter);
}

export const hotelBooking = '0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a01';
export const carBooking = '0b6f1c52-7d7e-4a57-9d43-5f0f6c1d2a02';
export const guestHotelBooking = '43b7a3a6-9a8d-4a03-980d-7b71d8f56413';
export const guestCarBooking = '3139d32c-93cd-49bf-9c94-1cf0dc98d2c1';
export const absentBooking = '00000000-0000-4000-8000-000000000000';

export const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/;
