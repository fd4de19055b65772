/** The ground state: settings, records and limits, read once into plain frozen data. */
export type {
  AuthService,
  Configuration,
  ConfigurationError,
  Label,
  LabelGroup,
  Limit,
  LimitDescriptor,
  LimitDomain,
  Mapping,
  RateLimitService,
  Source,
  Unit,
  User,
} from './configuration.ts';
