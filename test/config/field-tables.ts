/** The tables of the fields of all kinds of records. */
import type { FieldTable } from '../../src/config/fields/field.ts';
import { authServiceFields } from '../../src/config/records/auth-service.ts';
import { mappingFields } from '../../src/config/records/mapping-fields.ts';
import { rateLimitServiceFields } from '../../src/config/records/rate-limit-service.ts';
import { jwtProviderFields } from '../../src/config/records/tokens/jwt-provider.ts';
import { versionFields } from '../../src/config/records/version.ts';

export const fieldTables: Readonly<
  Record<'Mapping' | 'AuthService' | 'JwtProvider' | 'RateLimitService' | 'Version', FieldTable>
> = {
  Mapping: mappingFields,
  AuthService: authServiceFields,
  JwtProvider: jwtProviderFields,
  RateLimitService: rateLimitServiceFields,
  Version: versionFields,
};
