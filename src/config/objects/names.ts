/** Finds the AuthService or JwtProvider that a record names: in its own namespace, or else in a trusted one. */
import type { AuthService } from '../records/auth-service.ts';
import type { Mapping } from '../records/mapping.ts';
import type { GatewayRecord } from '../records/record.ts';
import { createCopies } from './copies.ts';
import { nameIn } from './references.ts';

export interface Names {
  /** Looks the names up among these records. */
  readonly among: (records: readonly GatewayRecord[]) => {
    /** Returns the record with the names that other records really have: always the same copy for the same names. */
    readonly resolve: (record: GatewayRecord, namespace: string) => GatewayRecord;
  };
}

export function createNames(trusted: readonly string[]): Names {
  const copyOf = createCopies<GatewayRecord>();

  return {
    among(records) {
      const namesOf = (kind: GatewayRecord['kind']) =>
        new Set(records.filter((record) => record.kind === kind).map(({ name }) => name));
      const known = { AuthService: namesOf('AuthService'), JwtProvider: namesOf('JwtProvider') };

      function nameOf(kind: keyof typeof known, name: string, namespace: string): string {
        const candidates = [namespace, ...trusted].map((one) => nameIn(one, name));
        return [...candidates, name].find((candidate) => known[kind].has(candidate)) ?? name;
      }

      function ofMapping(record: Mapping, namespace: string): GatewayRecord {
        if (record.authService === undefined) return record;
        const authService = nameOf('AuthService', record.authService, namespace);
        return authService === record.authService
          ? record
          : copyOf(record, authService, () => ({ ...record, authService }));
      }

      function ofAuthService(record: AuthService, namespace: string): GatewayRecord {
        const providers = record.providers.map((name) => nameOf('JwtProvider', name, namespace));
        const isSame = providers.every((name, index) => name === record.providers[index]);
        return isSame ? record : copyOf(record, providers.join(), () => ({ ...record, providers }));
      }

      return {
        resolve(record, namespace) {
          if (record.kind === 'Mapping') return ofMapping(record, namespace);
          return record.kind === 'AuthService' ? ofAuthService(record, namespace) : record;
        },
      };
    },
  };
}
