/** Rules between mappings and auth services: who is asked for which mapping, and whose headers a mapping leaves alone. */
import type { ConfigurationError } from './configuration.ts';
import type { Fault } from './fields.ts';
import type { AuthService, Mapping } from './gateway-records.ts';
import { didYouMean } from './suggest.ts';
import type { Kept } from './uniqueness.ts';

/** A mapping whose auth service is not there is left out: it would be open, or ask somebody else. */
export function keepAuthenticated(mappings: readonly Mapping[], services: readonly AuthService[]): Kept<Mapping> {
  const identity = new Map(
    services.flatMap((service) => service.allowedAuthorizationHeaders.map((name) => [name, service])),
  );
  const names = new Set(services.map(({ name }) => name));
  const hasDefault = services.length === 0 || services.some(({ isDefault }) => isDefault);
  const rules = [
    (mapping: Mapping) => serviceFault(mapping, names, hasDefault),
    (mapping: Mapping) => identityFault(mapping, identity),
  ];
  const errors: ConfigurationError[] = [];
  const kept = mappings.filter((mapping) => {
    const before = errors.length;
    for (const faultOf of rules) {
      const fault = faultOf(mapping);
      if (fault !== undefined) errors.push({ source: mapping.source, record: `Mapping ${mapping.name}`, ...fault });
    }
    return errors.length === before;
  });
  return { kept, errors };
}

function serviceFault(mapping: Mapping, names: ReadonlySet<string>, hasDefault: boolean): Fault | undefined {
  const { authService, bypassAuth, redirect } = mapping;
  if (authService !== undefined) {
    if (names.has(authService)) return undefined;
    return {
      message: `there is no AuthService "${authService}"${didYouMean(authService, names)}`,
      remedy: `Write an AuthService of this name${names.size === 0 ? '' : `, or name one of ${[...names].join(', ')}`}.`,
    };
  }
  if (hasDefault || bypassAuth || redirect !== undefined) return undefined;
  return {
    message: 'names no auth_service, and no AuthService is the default',
    remedy: `Name one: auth_service: ${[...names][0]}; or set default: true in one AuthService.`,
  };
}

/** What clients send under these names is taken away, and what the auth service says must arrive as it said it. */
function identityFault(mapping: Mapping, identity: ReadonlyMap<string, AuthService>): Fault | undefined {
  const set = mapping.requestHeaders.add.find(({ name }) => identity.has(name));
  if (set !== undefined) {
    return {
      message: `add_request_headers sets "${set.name}", which only AuthService ${identity.get(set.name)?.name} can set`,
      remedy: 'Choose another name: services take this one for who the client is.',
    };
  }
  const asked = mapping.headers.find(({ name }) => identity.has(name));
  if (asked === undefined) return undefined;
  return {
    message: `asks for the header "${asked.name}", which is taken away before mappings are tried`,
    remedy: `Remove it: AuthService ${identity.get(asked.name)?.name} sets it after the mapping is chosen.`,
  };
}
