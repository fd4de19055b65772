/** What a program may write as a record instead of a file: a map of its fields, typed by the tables that check it. */
import type { InputOf } from '../fields/field.ts';
import type { authServiceFields } from './auth-service.ts';
import type { mappingFields } from './mapping-fields.ts';
import type { rateLimitServiceFields } from './rate-limit-service.ts';
import type { jwtProviderFields } from './tokens/jwt-provider.ts';
import type { versionFields } from './version.ts';

// The build adds the fields to these interfaces with their documentation, which editors show. A mapped type has none.

/** Routes requests to a service. */
export interface MappingInput extends Head<'Mapping'>, InputOf<typeof mappingFields> {}

/** The service that authenticates clients. */
export interface AuthServiceInput extends Head<'AuthService'>, InputOf<typeof authServiceFields> {}

/** An issuer of tokens, whose keys verify them. */
export interface JwtProviderInput extends Head<'JwtProvider'>, InputOf<typeof jwtProviderFields> {}

/** The service that limits labelled requests. */
export interface RateLimitServiceInput extends Head<'RateLimitService'>, InputOf<typeof rateLimitServiceFields> {}

/** A deprecated part of the API, when it ends, and what replaces it. */
export interface VersionInput extends Head<'Version'>, InputOf<typeof versionFields> {}

interface Head<Kind extends string> {
  readonly apiVersion: 'gateway/v1';
  readonly kind: Kind;
}

/** A Kubernetes Service, whose annotation `gateway.local/config` contains records as YAML text. */
export interface ServiceManifest {
  readonly apiVersion: 'v1';
  readonly kind: 'Service';
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string | undefined;
    readonly annotations?: Readonly<Record<string, string>> | undefined;
    readonly [field: string]: unknown;
  };
  readonly spec?: unknown;
  readonly status?: unknown;
}

/** A record of Ambassador or Emissary, which is translated. Its fields are checked when it is read. */
export interface AmbassadorRecord {
  readonly apiVersion: `ambassador/${string}` | `${string}getambassador.io/${string}`;
  readonly kind: string;
  readonly [field: string]: unknown;
}

export type RecordInput =
  | MappingInput
  | AuthServiceInput
  | JwtProviderInput
  | RateLimitServiceInput
  | VersionInput
  | ServiceManifest
  | AmbassadorRecord;
