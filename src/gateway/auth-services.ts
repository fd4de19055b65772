/** The auth services that the records name, each ready to be asked, and which of them a mapping asks. */
import type { AuthPort } from '#auth';
import type { AuthService, Mapping } from '#config';
import type { Logger } from '#http';
import { createAuthOverHttp } from './auth-over-http.ts';
import { createPutQuestion, type PutQuestion } from './auth-question.ts';
import { type Authenticate, type AuthenticationOptions, askInProcess, createAuthentication } from './authenticate.ts';
import type { Holdings } from './holdings.ts';
import { createIdentity } from './identity.ts';
import type { Target } from './target.ts';

/** An AuthService of the records. */
export interface ConfiguredAuthService {
  readonly record: AuthService;
  /** The auth service in this process; undefined: it is asked across HTTP. */
  readonly port?: AuthPort | undefined;
}

export interface AuthStage {
  readonly name: string;
  readonly authenticate: Authenticate;
  /** What it is asked about a request. Pure. */
  readonly question: PutQuestion;
}

export interface AuthStages {
  /** Whether somebody is asked where a mapping does not say who. */
  readonly hasDefault: boolean;
  /** Undefined: the mapping is open. Throws TypeError when it must not be and nobody is there to ask. */
  readonly of: (mapping: Pick<Mapping, 'name' | 'bypassAuth' | 'authService'>) => AuthStage | undefined;
}

export interface AuthStagesParts extends Pick<AuthenticationOptions, 'counts' | 'onSilence'> {
  readonly resolve: (service: string) => Target;
  readonly holdings: Holdings;
  readonly logger: Logger;
}

/** Throws TypeError for services that cannot be told apart, or cannot be asked. */
export function createAuthStages(services: readonly ConfiguredAuthService[], parts: AuthStagesParts): AuthStages {
  const stages = new Map(services.map((service) => [service.record.name, createStage(service, parts)]));
  if (stages.size < services.length) throw new TypeError('two auth services have the same name');
  const usual = services.length === 1 ? services : services.filter(({ record }) => record.isDefault);
  if (usual.length > 1)
    throw new TypeError(`${usual.length} of ${services.length} auth services are the default: make it one`);
  return Object.freeze({
    hasDefault: usual.length === 1,
    of({ name, bypassAuth, authService = usual[0]?.record.name }: Parameters<AuthStages['of']>[0]) {
      if (bypassAuth || (authService === undefined && services.length === 0)) return undefined;
      if (authService === undefined)
        throw new TypeError(`Mapping ${name} names no auth service, and none of ${services.length} is the default`);
      const stage = stages.get(authService);
      if (stage === undefined) throw new TypeError(`Mapping ${name}: there is no auth service "${authService}"`);
      return stage;
    },
  });
}

function createStage({ record, port }: ConfiguredAuthService, parts: AuthStagesParts): AuthStage {
  const { counts, onSilence, logger } = parts;
  const identity = createIdentity(record.allowedAuthorizationHeaders);
  const ask = port === undefined ? askAcrossHttp(record, parts) : askInProcess(port, record);
  return Object.freeze({
    name: record.name,
    authenticate: createAuthentication({ record, ask, identity, counts, onSilence, logger }),
    question: createPutQuestion(record),
  });
}

function askAcrossHttp(record: AuthService, { resolve, holdings }: AuthStagesParts) {
  const target = resolve(record.authService);
  if (target.kind === 'local')
    throw new TypeError(`the auth service "${target.name}" is in this process but was not handed in`);
  return createAuthOverHttp({ record, cluster: holdings.ofAuthService(record, target), path: target.path });
}
