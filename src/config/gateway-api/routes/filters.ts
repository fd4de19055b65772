/** The filters of a rule or of a backend, as fields of a Mapping. */
import type {
  CorsSpec,
  FilterSpec,
  HeaderModifierSpec,
  MirrorSpec,
  ObjectReference,
  PathModifierSpec,
  RedirectSpec,
} from '../specs.ts';

export interface ReadFilters {
  /** Fields of a Mapping. */
  readonly fields: Readonly<Record<string, unknown>>;
  /** How the path changes for the service, or in the redirect. */
  readonly path: PathModifierSpec | undefined;
  readonly redirect: RedirectSpec | undefined;
  readonly mirror: MirrorSpec | undefined;
  /** Whether CORS permits credentials, with a star too, which a record cannot say. */
  readonly allowsCredentials: boolean;
  readonly extensions: readonly ObjectReference[];
  /** What cannot be done, which refuses the route: `URLRewrite of a backend is not supported`. */
  readonly unsupported: readonly string[];
}

type FilterType = FilterSpec['type'];

const typesOfRule: readonly FilterType[] = [
  'RequestHeaderModifier',
  'ResponseHeaderModifier',
  'RequestMirror',
  'RequestRedirect',
  'URLRewrite',
  'CORS',
  'ExtensionRef',
];

/** What concerns one backend alone. */
const typesOfBackend: readonly FilterType[] = ['RequestHeaderModifier', 'ResponseHeaderModifier'];

/** One for all rules and backends without filters, which are most. */
export const noFilters: ReadFilters = readAll([], 'rule');

export function readFilters(filters: readonly FilterSpec[] = [], of: 'rule' | 'backend' = 'rule'): ReadFilters {
  return filters.length === 0 ? noFilters : readAll(filters, of);
}

function readAll(filters: readonly FilterSpec[], of: 'rule' | 'backend'): ReadFilters {
  const known = of === 'rule' ? typesOfRule : typesOfBackend;
  const repeated = known.filter(
    (type) => type !== 'ExtensionRef' && filters.filter((one) => one.type === type).length > 1,
  );
  const unknown = filters.filter(({ type }) => !known.includes(type));
  const usable = filters.filter(({ type }) => known.includes(type));
  const last = <Part>(read: (filter: FilterSpec) => Part | undefined) =>
    usable.map(read).findLast((part) => part !== undefined);
  const rewrite = last(({ urlRewrite }) => urlRewrite);
  const redirect = last(({ requestRedirect }) => requestRedirect);
  const cors = last((filter) => filter.cors);
  return {
    fields: {
      ...headerFields(
        'request',
        last(({ requestHeaderModifier }) => requestHeaderModifier),
      ),
      ...headerFields(
        'response',
        last(({ responseHeaderModifier }) => responseHeaderModifier),
      ),
      ...(rewrite?.hostname !== undefined && { host_rewrite: rewrite.hostname }),
      ...(cors !== undefined && { cors: corsField(cors) }),
    },
    path: redirect?.path ?? rewrite?.path,
    redirect,
    mirror: last(({ requestMirror }) => requestMirror),
    allowsCredentials: cors?.allowCredentials ?? false,
    extensions: usable.flatMap(({ extensionRef }) => extensionRef ?? []),
    unsupported: [
      ...unknown.map(({ type }) => `a filter of the type ${type} in a ${of} is not supported`),
      ...repeated.map((type) => `a second filter of the type ${type} is not supported`),
      ...usable.flatMap(repeatedHeaders),
      ...(redirect !== undefined && rewrite !== undefined
        ? ['a filter of the type URLRewrite beside RequestRedirect is not supported']
        : []),
    ],
  };
}

function headerFields(
  of: 'request' | 'response',
  { set = [], add = [], remove = [] }: HeaderModifierSpec = {},
): Readonly<Record<string, unknown>> {
  const added = [
    ...set.map(({ name, value }) => [name.toLowerCase(), { value: literalValue(value), append: false }] as const),
    ...add.map(({ name, value }) => [name.toLowerCase(), { value: literalValue(value), append: true }] as const),
  ];
  return {
    ...(added.length > 0 && { [`add_${of}_headers`]: Object.fromEntries(added) }),
    ...(remove.length > 0 && { [`remove_${of}_headers`]: remove }),
  };
}

/** The Gateway API permits one action for each header: the order of several would decide, which it leaves open. */
function repeatedHeaders({ type, requestHeaderModifier, responseHeaderModifier }: FilterSpec): readonly string[] {
  const { set = [], add = [], remove = [] } = requestHeaderModifier ?? responseHeaderModifier ?? {};
  const names = [...[...set, ...add].map(({ name }) => name), ...remove].map((name) => name.toLowerCase());
  const repeated = new Set(names.filter((name, index) => names.indexOf(name) < index));
  const advice = 'several values are one, with commas';
  return [...repeated].map((name) => `a second action of a ${type} for the header ${name} is not supported: ${advice}`);
}

/** In a record, a value may have variables between percent signs. */
function literalValue(value: string): string {
  return value.replaceAll('%', '%%');
}

function corsField(cors: CorsSpec): Readonly<Record<string, unknown>> {
  const { allowOrigins, allowMethods, allowHeaders, exposeHeaders, maxAge } = cors;
  return {
    origins: allowOrigins ?? [],
    ...(allowMethods !== undefined && { methods: allowMethods }),
    ...(allowHeaders !== undefined && { headers: allowHeaders }),
    ...(exposeHeaders !== undefined && { exposed_headers: exposeHeaders }),
    ...(maxAge !== undefined && { max_age: maxAge }),
  };
}

/** Puts the headers of a backend's filters after those of its rule, whose headers of the same name they replace. */
export function joinedHeaders(
  ofRule: ReadFilters['fields'],
  ofBackend: ReadFilters['fields'],
): Readonly<Record<string, unknown>> {
  const joined = Object.entries(ofBackend).map(([name, value]) => {
    const before = ofRule[name];
    if (Array.isArray(value)) return [name, [...(Array.isArray(before) ? before : []), ...value]];
    return [name, { ...Object(before), ...Object(value) }];
  });
  return { ...ofRule, ...Object.fromEntries(joined) };
}
