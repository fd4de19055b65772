/** The `tls` of a record: whom an HTTPS service must be certified by, and with which certificate it is called. */
import { tls as translateTls } from '../ambassador/readers.ts';
import type { Fault } from '../errors.ts';
import { hostSchema } from '../fields/addresses.ts';
import { mapOf, optional, snakeCase, text, type ValuesOf } from '../fields/field.ts';
import { anyCase, type JsonSchema } from '../fields/json-schema.ts';
import { singleLine } from '../fields/values.ts';
import { hostFault } from '../records/match.ts';

const tlsFields = {
  ca: optional({ schema: text(fileFault) }),
  serverName: optional({ schema: text(hostFault, hostSchema) }),
  clientCert: optional({ schema: text(fileFault) }),
  clientKey: optional({ schema: text(fileFault) }),
};

/** The names of the fields that name files: all but one. */
export const tlsFileNames: readonly string[] = Object.keys(tlsFields)
  .filter((key) => key !== 'serverName')
  .map(snakeCase);

/** Files are relative to the configuration directory. */
export type UpstreamTls = ValuesOf<typeof tlsFields>;

const upstreamTls = mapOf(tlsFields, [
  {
    at: 'clientKey',
    reads: ['clientCert'],
    needs: 'clientCert',
    faultOf: ({ clientCert, clientKey }) => alone(clientKey, clientCert, 'client_cert'),
  },
  {
    at: 'clientCert',
    reads: ['clientKey'],
    needs: 'clientKey',
    faultOf: ({ clientCert, clientKey }) => alone(clientCert, clientKey, 'client_key'),
  },
]);

function alone(given: string | undefined, other: string | undefined, otherName: string): Fault | undefined {
  if (given === undefined || other !== undefined) return undefined;
  return { message: `has no effect without ${otherName}`, remedy: `Add ${otherName}, or remove this field.` };
}

/** A file has a name on one line. Does not repeat a key that was written instead. */
function fileFault(name: string): Fault | undefined {
  const remedy = 'Write the path of a PEM file, relative to the configuration directory.';
  if (name.includes('-----BEGIN ')) return { message: 'is the contents of a file', remedy };
  return singleLine().safeParse(name).success ? undefined : { message: 'is not the path of a file', remedy };
}

export const tlsField = optional({
  schema: upstreamTls,
  type: 'map',
  docs: 'For a service with `https`: `ca`, the authorities that may have issued its certificate, instead of those of the system; `server_name`, the name in it, instead of the host; `client_cert` and `client_key`, with which it is called. PEM files, relative to the configuration directory.',
  example: '{ ca: tls/ca.pem, client_cert: tls/gateway.crt, client_key: tls/gateway.key }',
  allowedWithRedirect: false,
  ambassador: translateTls,
});

/** Rejects `tls` for a service that is called without it. */
export function tlsFault(tls: UpstreamTls | undefined, service = ''): Fault | undefined {
  if (tls === undefined || /^https:/i.test(service)) return undefined;
  return { message: 'has no effect on a service that is not called with https', remedy: 'Write https://host:port.' };
}

/** What JSON Schema can say about `tlsFault` of this field. */
export function tlsSchema(service: string): JsonSchema {
  return {
    anyOf: [{ not: { required: ['tls'] } }, { properties: { [service]: { pattern: `^${anyCase('https')}:` } } }],
    errorMessage: `tls has no effect unless ${service} starts with https:`,
  };
}
