/** The schema of service references, with a message for each way in which a text is not one. */
import * as z from 'zod';
import { didYouMean, type Fault } from '../errors.ts';
import { quote } from '../quote.ts';
import { parseServiceReference, referenceSchema, type ServiceReference } from './addresses.ts';
import { text } from './field.ts';

type Scheme = NonNullable<ServiceReference['scheme']>;

/** What a record may write as a reference. */
interface Expected {
  readonly schemes: readonly [Scheme, ...Scheme[]];
  /** The field of the record for a path, which a reference does not have. */
  readonly pathField: string | undefined;
}

/** A service reference with one of these schemes or without a scheme. It has no path, because the request provides it. */
export function serviceReference(schemes: Expected['schemes'], pathField?: string) {
  const faultOf = (reference: string) => referenceFault(reference, { schemes, pathField });
  return z.preprocess(asText, text(faultOf, referenceSchema(schemes))) as z.ZodType<string, string>;
}

/** Makes a text of a port and of a list, so that they get the message about such a text. */
function asText(value: unknown): unknown {
  const isList = Array.isArray(value) && value.length > 1 && value.every((item) => typeof item === 'string');
  return isList || (Number.isInteger(value) && Number(value) >= 0) ? String(value) : value;
}

function referenceFault(reference: string, expected: Expected): Fault | undefined {
  const parsed = parseServiceReference(reference);
  const { schemes } = expected;
  const remedy = `Write the name of a service, name:port${schemes.map((scheme) => `, or ${scheme}://host:port`).join('')}.`;
  if (parsed === undefined)
    return malformedFault(reference, expected) ?? { message: 'is not a service reference', remedy };
  if (parsed.scheme !== undefined && !schemes.includes(parsed.scheme))
    return { message: `${quote(reference)} has a scheme that is not supported here`, remedy };
  return parsed.path === undefined ? undefined : pathFault(reference, expected);
}

/** Never quotes the whole text, which may contain credentials. */
function malformedFault(reference: string, expected: Expected): Fault | undefined {
  const [, message, remedy] = mistakes.find(([pattern]) => pattern.test(reference)) ?? [];
  if (message !== undefined && remedy !== undefined) return { message, remedy };
  return (
    portAloneFault(reference, expected) ??
    schemeFault(reference, expected) ??
    pathFault(reference, expected) ??
    portFault(reference)
  );
}

/** In the order in which they are checked. */
const mistakes: readonly (readonly [pattern: RegExp, message: string, remedy: string])[] = [
  [/^$/, 'is empty', 'Write the name or the address of the service.'],
  [/\$|\{\{/, 'contains a variable, which is not replaced', 'Write a name, and set SERVICE_ADDRESSES=name=host:port.'],
  [/,/, 'has several addresses', 'Write a name, and set SERVICE_ADDRESSES=name=host:port,name=host:port.'],
  [/\s/, 'contains a space', 'Remove it.'],
  [/@/, 'contains credentials', 'Remove them and the "@". A header can send them to the service.'],
  [/[?#]/, 'contains a query', 'Remove everything from the "?" or "#" on.'],
  [/^[^[]*:[^[\]/]*:[\da-f]*:/i, 'is an IPv6 address without brackets', 'Write it as in http://[::1]:3000.'],
];

function portAloneFault(reference: string, { schemes }: Expected): Fault | undefined {
  const [, port] = /^:?(\d{1,5})$/.exec(reference) ?? [];
  if (port === undefined) return undefined;
  const remedy = `Write ${schemes[0]}://127.0.0.1:${port} if the service runs on this machine.`;
  return { message: 'is a port without a host', remedy };
}

function schemeFault(reference: string, { schemes }: Expected): Fault | undefined {
  const starts = schemes.map((one) => `${one}://`).join(' or ');
  if (/^(?:https?|grpc)(?::\/?|\/\/)(?!\/)./i.test(reference))
    return { message: 'lacks "://" after the scheme', remedy: `Write ${starts} before the host.` };
  const [, scheme] = /^([a-z][a-z\d+.-]{0,14}):\/\//i.exec(reference) ?? [];
  if (scheme === undefined || known.includes(scheme.toLowerCase())) return undefined;
  const more = /^wss?$/i.test(scheme) ? ' WebSockets need allow_upgrade: [websocket].' : '';
  return { message: `has the scheme "${scheme}"${didYouMean(scheme, schemes)}`, remedy: `Write ${starts}.${more}` };
}

const known: readonly string[] = ['http', 'https', 'grpc'] satisfies readonly Scheme[];

/** The fault of a valid address that is followed by a path. */
function pathFault(reference: string, { pathField }: Expected): Fault | undefined {
  const [, address = '', path = ''] = /^((?:[a-z]+:\/\/)?[^/?#@\s]+)(\/[^?#@\s]*)$/i.exec(reference) ?? [];
  if (parseServiceReference(address) === undefined) return undefined;
  const rest = pathField === undefined || path === '/' ? '' : `, and ${pathField}: ${quoted(path)}`;
  return { message: `${quote(reference)} has a path`, remedy: `Write ${quoted(address)}${rest}.` };
}

/** Without quotes where YAML needs none. */
function quoted(part: string): string {
  return quote(part).replace(/^"([\w:/.-]+)"$/, '$1');
}

function portFault(reference: string): Fault | undefined {
  const [, digits] = /:(\d+)(?:\/|$)/.exec(reference) ?? [];
  if (digits === undefined || (Number(digits) >= 1 && Number(digits) <= 65_535)) return undefined;
  return { message: 'has a port that does not exist', remedy: 'Ports are from 1 to 65535: write that of the service.' };
}
